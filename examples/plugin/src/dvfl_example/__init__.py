"""An example of what another package can add to dvfl."""
