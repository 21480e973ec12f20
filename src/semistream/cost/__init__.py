"""What joins cost: the constants of a machine, measured, and the cost models that use them."""

from semistream.cost.corrected import predict
from semistream.cost.prediction import Prediction
from semistream.cost.printed import printed_prediction
from semistream.cost.situation import Situation
from semistream.cost.tuner import tune, tune_by_measurement, tuned_parameters
from semistream.cost.tuning import CurvePoint, Tuning

__all__ = [
    "CurvePoint",
    "Prediction",
    "Situation",
    "Tuning",
    "predict",
    "printed_prediction",
    "tune",
    "tune_by_measurement",
    "tuned_parameters",
]
