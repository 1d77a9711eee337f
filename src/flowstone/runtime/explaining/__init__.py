"""What a step did and where its time and memory went: explanations, profiles, StepStats, floors."""
