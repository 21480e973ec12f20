"""How each claim of the papers is judged, a file for each paper; importing this package registers them all."""
