"""semistream joins a stream with a master table far bigger than memory, inside a fixed byte budget."""
