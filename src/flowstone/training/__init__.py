"""Training: optimisers, learning-rate schedules, moving averages and the global step, all as nodes of the
graph; coordinators, queue runners and the input pipelines that they drive.
"""
