"""The graph that runs the corpus: the only package that imports Dagster."""

import warnings

import dagster as dg

# Partitioned checks and multi-to-single mappings are beta or preview in 1.13; the pin and the
# in-process tests hold them.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)
