"""Answers judged by RAGAS; a missing judgement is a row with a status, never a number."""
