"""`flowstone.saved_model`: models with their variables, assets and signatures in a folder, for serving."""

from flowstone.framework.names.refused_names import SaveOptions
from flowstone.ops.lookup.assets import Asset
from flowstone.saved_model import (
    builder,
    constants,
    loader,
    main_op,
    signature_constants,
    signature_def_utils,
    tag_constants,
    utils,
)
from flowstone.saved_model.builder import SavedModelBuilder as Builder
from flowstone.saved_model.constants import *
from flowstone.saved_model.loader import load, maybe_saved_model_directory
from flowstone.saved_model.loader import maybe_saved_model_directory as contains_saved_model
from flowstone.saved_model.main_op import main_op_with_restore
from flowstone.saved_model.object_loading import load_v2
from flowstone.saved_model.object_saving import save
from flowstone.saved_model.signature_constants import *
from flowstone.saved_model.signature_def_utils import (
    build_signature_def,
    classification_signature_def,
    is_valid_signature,
    predict_signature_def,
    regression_signature_def,
)
from flowstone.saved_model.simple_save import simple_save
from flowstone.saved_model.tag_constants import *
from flowstone.saved_model.utils import build_tensor_info, get_tensor_from_tensor_info
