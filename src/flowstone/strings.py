"""`flowstone.strings`: operations on strings."""

from flowstone.ops.strings.formatting import string_format as format
from flowstone.ops.strings.hash_buckets import string_to_hash_bucket as to_hash_bucket
from flowstone.ops.strings.hash_buckets import string_to_hash_bucket_fast as to_hash_bucket_fast
from flowstone.ops.strings.hash_buckets import string_to_hash_bucket_strong as to_hash_bucket_strong
from flowstone.ops.strings.joining import reduce_join, unsorted_segment_join
from flowstone.ops.strings.joining import string_join as join
from flowstone.ops.strings.letters import string_length as length
from flowstone.ops.strings.letters import string_lower as lower
from flowstone.ops.strings.letters import string_strip as strip
from flowstone.ops.strings.letters import string_upper as upper
from flowstone.ops.strings.number_texts import as_string
from flowstone.ops.strings.number_texts import string_to_number as to_number
from flowstone.ops.strings.regular_expressions import regex_full_match, regex_replace
from flowstone.ops.strings.splitting import split
from flowstone.ops.strings.substrings import substr
from flowstone.ops.strings.unicode_functions import (
    bytes_split,
    ngrams,
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)
from flowstone.ops.strings.unicode_scripts import unicode_script
