"""How rows are written down: as they are, or in fewer bytes."""

from demoa.aggregation.stores.codecs.bfloat16 import Bfloat16Codec
from demoa.aggregation.stores.codecs.codec import Codec, Plane, Planes
from demoa.aggregation.stores.codecs.int8 import Int8Codec
from demoa.aggregation.stores.codecs.plain import PlainCodec
from demoa.aggregation.stores.codecs.top_k import TopKCodec

__all__ = ["Bfloat16Codec", "Codec", "Int8Codec", "PlainCodec", "Plane", "Planes", "TopKCodec"]
