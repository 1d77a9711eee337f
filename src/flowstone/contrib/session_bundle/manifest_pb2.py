"""The messages of a session bundle's signatures."""

from flowstone.io.proto.manifest_pb2 import AssetFile as AssetFile
from flowstone.io.proto.manifest_pb2 import ClassificationSignature as ClassificationSignature
from flowstone.io.proto.manifest_pb2 import GenericSignature as GenericSignature
from flowstone.io.proto.manifest_pb2 import RegressionSignature as RegressionSignature
from flowstone.io.proto.manifest_pb2 import Signature as Signature
from flowstone.io.proto.manifest_pb2 import Signatures as Signatures
from flowstone.io.proto.manifest_pb2 import TensorBinding as TensorBinding
