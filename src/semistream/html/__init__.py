"""What the HTML pages that semistream writes have in common; each page stands with what it is about."""
