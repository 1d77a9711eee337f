"""`tf.contrib.summary`: summaries that a step writes itself, without a `FileWriter` of the program."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.summary.recording": "always_record_summaries never_record_summaries"
        " record_summaries_every_n_global_steps should_record_summaries",
        "flowstone.contrib.summary.summary_ops": "all_summary_ops audio generic graph histogram image"
        " import_event initialize scalar",
        "flowstone.contrib.summary.summary_writers": "SummaryWriter create_db_writer create_file_writer"
        " create_summary_file_writer=create_file_writer eval_dir flush summary_writer_initializer_op",
    },
)
