"""Values and rules that everything shares; imports nothing of ours."""
