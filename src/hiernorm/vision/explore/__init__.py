"""A local page on which a collection of photos is explored: keypoints, neighbours and the proof."""
