"""Other people's loops: what they need to have the layers beneath them."""
