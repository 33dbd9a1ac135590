"""The pure core: the kernel, the lifecycles that are written in it, and the fleet that is made of them."""
