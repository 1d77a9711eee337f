"""Matrix products joined, stacked and fused with what follows."""
