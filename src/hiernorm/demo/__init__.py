"""The demo: photographs in, exact nearest neighbours out, and a page that shows and proves it."""
