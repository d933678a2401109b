"""The live index: promotion and rollback as recorded events that readers follow."""
