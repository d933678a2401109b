"""One thin file an asset: read inputs, call the stage, write one partition, say what happened."""
