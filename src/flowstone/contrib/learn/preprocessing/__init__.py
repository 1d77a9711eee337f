"""`tf.contrib.learn.preprocessing`: texts and categories as ids."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.contrib.learn.preprocessing.categorical": "CategoricalProcessor"
        " setup_processor_data_feeder",
        "flowstone.contrib.learn.preprocessing.categorical_vocabulary": "CategoricalVocabulary",
        "flowstone.contrib.learn.preprocessing.text": "ByteProcessor TOKENIZER_RE"
        " VocabularyProcessor tokenizer",
    },
    "categorical categorical_vocabulary text",
)
