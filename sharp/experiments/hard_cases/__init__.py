"""The second hundred: hard cases, each with a reference that is exact or computed without any solver here."""
