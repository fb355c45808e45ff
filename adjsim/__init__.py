"""Forward physics: models, forces, rollouts. Never learns that gradients exist."""
