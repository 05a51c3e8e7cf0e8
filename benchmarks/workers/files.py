"""What every worker does with its folder. Runs in the peers' own, older Pythons."""

import json
import sys
import time
from pathlib import Path

import numpy as np

try:  # some models hold functions, which the standard library's pickle refuses
    import cloudpickle as pickle
except ImportError:
    import pickle


def serve(fit, predict):
    """Run a worker.

    ``fit(settings, arrays)`` returns a model and a dict of arrays to hand back;
    ``predict(model, arrays)`` returns a dict of arrays (``labels``, perhaps ``scores``).
    Validation rows (``Xv``, ``gv``) are predicted right after fitting.
    """
    folder = Path(sys.argv[2])
    if sys.argv[1] == "predict":
        model = pickle.loads((folder / f"{sys.argv[3]}.pkl").read_bytes())
        np.savez(folder / "predicted.npz", **predict(model, dict(np.load(folder / "rows.npz"))))
        return
    arrays = dict(np.load(folder / "in.npz"))
    for number, settings in enumerate(json.loads((folder / "in.json").read_text())["settings"]):
        record = {}
        start = time.process_time()
        try:
            model, out = fit(settings, arrays)
            record["seconds"] = time.process_time() - start
            if model is not None:
                (folder / f"{number}.pkl").write_bytes(pickle.dumps(model))
                rows = {"X": arrays["Xv"], "group": arrays["gv"]}
                out = {**out, **predict(model, rows)}
            np.savez(folder / f"{number}.npz", **out)
        except Exception as error:
            record["seconds"] = time.process_time() - start
            text = str(error).strip().splitlines() or [""]
            record["error"] = f"{type(error).__name__}: {text[0][:160]}"
        temporary = folder / f"{number}.tmp"
        temporary.write_text(json.dumps(record))
        temporary.rename(folder / f"{number}.json")
