"""What a plan is: typed actions, proof, capacity and what the engine printed."""
