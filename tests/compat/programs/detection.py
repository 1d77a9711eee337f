"""Object detection after the network: anchors, decoding, suppression, crops, and a loop over images."""
import numpy as np
import tensorflow as tf


def generate_anchors(grid_height, grid_width, scales, aspect_ratios, stride):
    scales_grid, ratios_grid = tf.meshgrid(scales, aspect_ratios)
    scales_grid = tf.reshape(scales_grid, [-1])
    ratio_sqrts = tf.sqrt(tf.reshape(ratios_grid, [-1]))
    heights, widths = scales_grid / ratio_sqrts * 16., scales_grid * ratio_sqrts * 16.
    y = tf.to_float(tf.range(grid_height)) * stride
    x = tf.to_float(tf.range(grid_width)) * stride
    x, y = tf.meshgrid(x, y)
    widths_grid, x_grid = tf.meshgrid(widths, tf.reshape(x, [-1]))
    heights_grid, y_grid = tf.meshgrid(heights, tf.reshape(y, [-1]))
    centers = tf.reshape(tf.stack([y_grid, x_grid], axis=2), [-1, 2])
    sizes = tf.reshape(tf.stack([heights_grid, widths_grid], axis=2), [-1, 2])
    return tf.concat([centers - .5 * sizes, centers + .5 * sizes], 1)


def decode(codes, anchors):
    ymin, xmin, ymax, xmax = tf.unstack(tf.transpose(anchors))
    h, w = ymax - ymin, xmax - xmin
    ty, tx, th, tw = tf.unstack(tf.transpose(codes))
    ycenter, xcenter = ty / 10. * h + (ymin + h / 2), tx / 10. * w + (xmin + w / 2)
    h, w = tf.exp(th / 5.) * h, tf.exp(tw / 5.) * w
    return tf.transpose(tf.stack([ycenter - h / 2., xcenter - w / 2., ycenter + h / 2., xcenter + w / 2.]))


def area(boxes):
    y_min, x_min, y_max, x_max = tf.split(value=boxes, num_or_size_splits=4, axis=1)
    return tf.squeeze((y_max - y_min) * (x_max - x_min), [1])


def iou(boxes1, boxes2):
    y_min1, x_min1, y_max1, x_max1 = tf.split(boxes1, 4, axis=1)
    y_min2, x_min2, y_max2, x_max2 = tf.split(boxes2, 4, axis=1)
    heights = tf.maximum(0.0, tf.minimum(y_max1, tf.transpose(y_max2)) - tf.maximum(y_min1, tf.transpose(y_min2)))
    widths = tf.maximum(0.0, tf.minimum(x_max1, tf.transpose(x_max2)) - tf.maximum(x_min1, tf.transpose(x_min2)))
    intersections = heights * widths
    unions = tf.expand_dims(area(boxes1), 1) + tf.expand_dims(area(boxes2), 0) - intersections
    return tf.where(tf.equal(intersections, 0.0), tf.zeros_like(intersections), tf.truediv(intersections, unions))


def multiclass_non_max_suppression(boxes, scores, score_thresh, iou_thresh, max_per_class, max_total):
    num_classes = scores.get_shape()[1].value
    selected = []
    for class_idx in range(num_classes):
        class_scores = scores[:, class_idx]
        keep = tf.reshape(tf.where(tf.greater(class_scores, score_thresh)), [-1])
        kept_boxes, kept_scores = tf.gather(boxes, keep), tf.gather(class_scores, keep)
        limit = tf.minimum(max_per_class, tf.shape(kept_boxes)[0])
        indices = tf.image.non_max_suppression(kept_boxes, kept_scores, limit, iou_threshold=iou_thresh)
        selected.append((tf.gather(kept_boxes, indices), tf.gather(kept_scores, indices),
                         class_idx * tf.ones_like(indices)))
    all_boxes, all_scores, classes = [tf.concat(parts, 0) for parts in zip(*selected)]
    order = tf.nn.top_k(all_scores, k=tf.minimum(max_total, tf.size(all_scores)), sorted=True).indices
    pad = [[0, max_total - tf.size(order)]]
    return (tf.pad(tf.gather(all_boxes, order), pad + [[0, 0]]), tf.pad(tf.gather(all_scores, order), pad),
            tf.pad(tf.gather(classes, order), pad), tf.size(order))


rng = np.random.RandomState(0)
with tf.Graph().as_default():
    anchors = generate_anchors(4, 4, [0.5, 1.0, 2.0], [0.5, 1.0], 8.)
    count = 4 * 4 * 6
    codes = tf.constant(rng.normal(0, 1, [2, count, 4]), tf.float32)
    class_logits = tf.constant(rng.normal(0, 2, [2, count, 3]), tf.float32)
    window = tf.constant([0., 0., 32., 32.])

    def one_image(args):
        code, logit = args
        boxes = decode(code, anchors)
        boxes = tf.maximum(tf.minimum(boxes, tf.tile(window[2:], [2])), tf.tile(window[:2], [2])) / 32.
        return multiclass_non_max_suppression(boxes, tf.nn.softmax(logit), 0.6, 0.5, 5, 8)

    boxes, scores, classes, num = tf.map_fn(one_image, (codes, class_logits),
                                            dtype=(tf.float32, tf.float32, tf.int32, tf.int32))
    image = tf.constant(np.indices([2, 32, 32, 1]).sum(0), tf.float32)
    crops = tf.image.crop_and_resize(image, tf.reshape(boxes[:, :3], [-1, 4]), tf.constant([0] * 3 + [1] * 3), [4, 4])
    pooled = tf.squeeze(tf.nn.max_pool(crops, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME'), 3)
    drawn = tf.image.draw_bounding_boxes(tf.zeros([2, 32, 32, 3]), boxes)

    # Greedy matching of ground truth, one box an iteration.
    truth = tf.constant([[0., 0., 12., 12.], [10., 10., 30., 28.], [20., 2., 30., 12.]])
    similarity = iou(truth, anchors)
    best_columns = tf.argmax(similarity, 1)

    def body(i, sim, matches):
        flat = tf.to_int32(tf.argmax(tf.reshape(sim, [-1])))
        row, column = flat // count, tf.floormod(flat, count)
        matches = matches.write(i, tf.stack([row, column]))
        sim = tf.where(tf.logical_or(tf.equal(tf.range(3)[:, None] + tf.zeros([1, count], tf.int32), row),
                                     tf.equal(tf.range(count)[None] + tf.zeros([3, 1], tf.int32), column)),
                       -tf.ones_like(sim), sim)
        return i + 1, sim, matches

    _, _, matches = tf.while_loop(lambda i, *_: i < 3, body, [0, similarity, tf.TensorArray(tf.int32, 3)],
                                  parallel_iterations=1, back_prop=False)
    matched = matches.stack()
    smooth = tf.losses.huber_loss(tf.gather(decode(codes[0], anchors), matched[:, 1]), truth,
                                  weights=[[1.], [.5], [0.]], delta=2.0,
                                  reduction=tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS)
    focal = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.one_hot(tf.argmax(class_logits, 2), 3),
                                                                  logits=class_logits)
                          * tf.pow(1 - tf.nn.sigmoid(class_logits), 2.))
    with tf.Session() as sess:
        b, s, c, n = sess.run([boxes, scores, classes, num])
        for index in range(2):
            print("image", index, "detections", n[index], "classes", c[index].tolist())
            print(" ".join("%.4f" % v for v in s[index]))
            print(np.round(b[index, :3].astype(float), 3).ravel().tolist())
        print([round(float(v), 2) for v in pooled.eval().ravel()])
        print("%.2f" % drawn.eval().sum(), best_columns.eval().tolist(), matched.eval().tolist())
        print("%.4f %.4f" % tuple(sess.run([smooth, focal])))
        print(tf.image.non_max_suppression_with_scores(tf.constant([[0, 0, 1, 1], [0, 0, 1, .9], [1, 1, 2, 2]], tf.float32),
                                                       [.9, .8, .7], 3, .95, soft_nms_sigma=0.5)[1].eval().round(4).tolist())
