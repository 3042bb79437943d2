"""One module for each kind of vector: the vector's input in, what this program answers out."""
