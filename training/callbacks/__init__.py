"""What happens around the updates of `model.fit`: counting, logs, validation, saving, stopping."""
