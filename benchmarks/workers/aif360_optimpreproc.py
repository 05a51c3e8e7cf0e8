"""AIF360's OptimPreproc: training rows with features and labels remapped at random."""

import numpy as np
import pandas as pd
from aif360.algorithms.preprocessing.optim_preproc import OptimPreproc
from aif360.algorithms.preprocessing.optim_preproc_helpers import distortion_functions
from aif360.algorithms.preprocessing.optim_preproc_helpers.opt_tools import OptTools
from aif360.datasets import BinaryLabelDataset
from files import serve

LABELS = {
    "adult": ("Income Binary", {1.0: ">50K", 0.0: "<=50K"}, "get_distortion_adult"),
    "compas": ("two_year_recid", {1.0: "Did recid.", 0.0: "No recid."}, "get_distortion_compas"),
}
GROUP = {"adult": "sex", "compas": "race"}


def fit(settings, arrays):
    name = settings["dataset"]
    label, texts, distortion = LABELS[name]
    columns = list(arrays["columns"])
    frame = pd.DataFrame(arrays["coarse"], columns=columns)
    frame = pd.get_dummies(frame, prefix_sep="=").astype(float)
    frame[label] = arrays["y"].astype(float)
    frame[GROUP[name]] = arrays["g"].astype(float)
    data = BinaryLabelDataset(
        df=frame,
        label_names=[label],
        protected_attribute_names=[GROUP[name]],
        favorable_label=1.0,
        unfavorable_label=0.0,
        metadata={
            "label_maps": [texts],
            "protected_attribute_maps": [{1.0: "one", 0.0: "other"}],
        },
    )
    method = OptimPreproc(
        OptTools,
        {
            "distortion_fun": getattr(distortion_functions, distortion),
            "epsilon": settings["epsilon"],
            "clist": [0.99, 1.99, 2.99],
            "dlist": [0.1, 0.05, 0.0],
        },
        seed=0,
    )
    changed = method.fit(data).transform(data, transform_Y=True)
    names = [str(c) for c in changed.feature_names if c != GROUP[name]]
    keep = [changed.feature_names.index(c) for c in names]
    return None, {
        "X": np.asarray(changed.features[:, keep], dtype=float),
        "y": np.asarray(changed.labels).ravel(),
        "names": np.array(names),
    }


serve(fit, None)
