"""Seldonian: logistic regression by CMA-ES, with the safety test on the validation part."""

import numpy as np
from files import serve
from seldonian.dataset import SupervisedDataSet, SupervisedMetaData
from seldonian.models import objectives
from seldonian.models.models import BinaryLogisticRegressionModel
from seldonian.parse_tree.parse_tree import make_parse_trees_from_constraints
from seldonian.seldonian_algorithm import SeldonianAlgorithm
from seldonian.spec import SupervisedSpec

RATES = {"SP": "PR", "FPR": "FPR", "FNR": "FNR"}


def dataset(X, y, group):
    meta = SupervisedMetaData(
        sub_regime="classification",
        all_col_names=["one", "other", *(f"x{k}" for k in range(X.shape[1])), "y"],
        feature_col_names=[f"x{k}" for k in range(X.shape[1])],
        label_col_names=["y"],
        sensitive_col_names=["one", "other"],
    )
    return SupervisedDataSet(
        features=X,
        labels=y.astype(int),
        sensitive_attrs=np.c_[group == 1, group == 0].astype(int),
        num_datapoints=len(y),
        meta=meta,
    )


def fit(settings, arrays):
    candidate = dataset(arrays["X"], arrays["y"], arrays["g"])
    safety = dataset(arrays["Xv"], arrays["yv"], arrays["gv"])
    metric = RATES[settings["metric"]]
    text = f"abs(({metric} | [one]) - ({metric} | [other])) <= {settings['bound']}"
    trees = make_parse_trees_from_constraints(
        [text],
        [settings["delta"]],
        regime="supervised_learning",
        sub_regime="classification",
        columns=["one", "other"],
        delta_weight_method="equal",
    )
    width = arrays["X"].shape[1] + 1
    spec = SupervisedSpec(
        dataset=None,
        candidate_dataset=candidate,
        safety_dataset=safety,
        model=BinaryLogisticRegressionModel(),
        parse_trees=trees,
        sub_regime="classification",
        primary_objective=objectives.binary_logistic_loss,
        use_builtin_primary_gradient_fn=True,
        initial_solution_fn=lambda *_: np.zeros(width),
        optimization_technique="barrier_function",
        optimizer="CMA-ES",
        optimization_hyperparams={
            "maxiter": settings["maxiter"],
            "seed": 1,
            "sigma0": 0.2,
            "hyper_search": None,
            "verbose": False,
        },
    )
    passed, solution = SeldonianAlgorithm(spec).run()
    if not passed:
        raise ValueError("no solution found: its safety test failed")
    return np.asarray(solution), {}


def predict(model, arrays):
    scores = model[0] + arrays["X"] @ model[1:]
    return {"labels": (scores > 0).astype(int), "scores": scores}


serve(fit, predict)
