"""What the routers of a trained model do on real data: numbers, a summary, pictures."""
