"""Looking at a campaign from beside whoever steers it, and acting on it: for people and their commands."""
