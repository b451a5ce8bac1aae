"""Team memory, client side: the protocol that the server shares, what it decides, and who carries it out."""
