"""The one join loop and its parts."""
