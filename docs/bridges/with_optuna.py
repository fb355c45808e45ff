"""The stiffness of the chain by Optuna, which asks for no gradient."""

import numpy as np
import optuna
from chain import frames, measured


def objective(trial):
    """Return the mean square distance to where the chain was."""
    stiffness = trial.suggest_float("stiffness", 10.0, 1000.0, log=True)
    return np.mean((frames(stiffness) - measured) ** 2)


def found(n_trials):
    """Return the best stiffness of some trials [N/m]."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials)
    return study.best_params["stiffness"]


if __name__ == "__main__":
    print(f"{found(60):.2f} N/m (true: 60)")
