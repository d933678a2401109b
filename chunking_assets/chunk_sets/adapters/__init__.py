"""Splitters of other libraries as strategies: the baselines the product's own are held against."""
