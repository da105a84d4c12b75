"""`report.html` of a run: one file for somebody who was not there."""
