"""What is minimised and what is measured, both over real target tokens alone."""
