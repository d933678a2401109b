"""The measurement: gold questions, retrieval scores, judged answers, and the verdict."""
