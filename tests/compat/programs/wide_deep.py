"""Wide and deep with feature columns, canned Estimators, CSV files and exports, as the census tutorial did it."""
from __future__ import absolute_import, division, print_function
import argparse
import os
import shutil
import sys
import tempfile

import tensorflow as tf

_CSV_COLUMNS = ['age', 'workclass', 'education', 'hours', 'income']
_CSV_COLUMN_DEFAULTS = [[0], [''], [''], [0], ['']]
ROWS = ["39,private,masters,50,>50K", "25,private,school,20,<=50K", "52,state,masters,45,>50K",
        "23,self,school,30,<=50K", "48,self,masters,60,>50K", "19,private,school,15,<=50K",
        "33,state,bachelors,40,>50K", "31,private,bachelors,20,<=50K"]

parser = argparse.ArgumentParser()
parser.add_argument('--model_dir', type=str, default=tempfile.mkdtemp())
parser.add_argument('--model_type', type=str, default='wide_deep')
parser.add_argument('--train_epochs', type=int, default=20)
parser.add_argument('--batch_size', type=int, default=8)


def build_model_columns():
    age = tf.feature_column.numeric_column('age')
    hours = tf.feature_column.numeric_column('hours', normalizer_fn=lambda x: (tf.to_float(x) - 35.) / 15.)
    education = tf.feature_column.categorical_column_with_vocabulary_list(
        'education', ['bachelors', 'masters', 'school'])
    workclass = tf.feature_column.categorical_column_with_hash_bucket('workclass', hash_bucket_size=10)
    age_buckets = tf.feature_column.bucketized_column(age, boundaries=[18, 25, 30, 40, 50])
    base_columns = [education, workclass, age_buckets]
    crossed_columns = [
        tf.feature_column.crossed_column(['education', 'workclass'], hash_bucket_size=50),
        tf.feature_column.crossed_column([age_buckets, 'education'], hash_bucket_size=50),
    ]
    deep_columns = [hours, tf.feature_column.indicator_column(education),
                    tf.feature_column.embedding_column(workclass, dimension=3,
                                                       initializer=tf.constant_initializer(0.1))]
    return base_columns + crossed_columns, deep_columns


def build_estimator(model_dir, model_type):
    wide_columns, deep_columns = build_model_columns()
    run_config = tf.estimator.RunConfig(tf_random_seed=7).replace(
        session_config=tf.ConfigProto(device_count={'GPU': 0}), save_summary_steps=10)
    if model_type == 'wide':
        return tf.estimator.LinearClassifier(model_dir=model_dir, feature_columns=wide_columns, config=run_config)
    return tf.estimator.DNNLinearCombinedClassifier(
        model_dir=model_dir, linear_feature_columns=wide_columns, dnn_feature_columns=deep_columns,
        dnn_hidden_units=[6, 4], config=run_config,
        dnn_optimizer=tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.001))


def input_fn(data_file, num_epochs, shuffle, batch_size):
    assert tf.gfile.Exists(data_file), '%s not found.' % data_file

    def parse_csv(value):
        columns = tf.decode_csv(value, record_defaults=_CSV_COLUMN_DEFAULTS)
        features = dict(zip(_CSV_COLUMNS, columns))
        labels = features.pop('income')
        return features, tf.equal(labels, '>50K')

    dataset = tf.data.TextLineDataset(data_file)
    if shuffle:
        dataset = dataset.shuffle(buffer_size=8)
    dataset = dataset.map(parse_csv, num_parallel_calls=2)
    dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size)
    return dataset.make_one_shot_iterator().get_next()


def main(unused_argv):
    data_file = os.path.join(FLAGS.model_dir, 'adult.data')
    with tf.gfile.Open(data_file, 'w') as f:
        f.write('\n'.join(ROWS) + '\n')
    for model_type in ['wide', 'wide_deep']:
        model_dir = os.path.join(FLAGS.model_dir, model_type)
        shutil.rmtree(model_dir, ignore_errors=True)
        model = build_estimator(model_dir, model_type)
        model.train(input_fn=lambda: input_fn(data_file, FLAGS.train_epochs, False, FLAGS.batch_size))
        results = model.evaluate(input_fn=lambda: input_fn(data_file, 1, False, FLAGS.batch_size))
        print(model_type)
        for key in sorted(results):
            value = results[key]
            if model_type == 'wide' or key in ('global_step', 'label/mean', 'accuracy_baseline'):
                print('%s: %.4f' % (key, value))
        print(sorted(n for n in model.get_variable_names() if 'Adagrad' not in n and 'Adam' not in n)[:8])
        if model_type == 'wide':
            print(" ".join("%.4f" % v for v in model.get_variable_value('linear/linear_model/education/weights').ravel()))
            for prediction in list(model.predict(lambda: input_fn(data_file, 1, False, 4)))[:2]:
                print(sorted(prediction), prediction['class_ids'], prediction['classes'],
                      "%.4f" % prediction['logistic'][0])
            feature_spec = tf.feature_column.make_parse_example_spec(build_model_columns()[0])
            print(sorted((k, str(v.dtype)) for k, v in feature_spec.items()))
            export = model.export_savedmodel(
                os.path.join(FLAGS.model_dir, 'export'),
                tf.estimator.export.build_parsing_serving_input_receiver_fn(feature_spec))
            predictor = tf.contrib.predictor.from_saved_model(export, signature_def_key='predict')
            example = tf.train.Example(features=tf.train.Features(feature={
                'age': tf.train.Feature(float_list=tf.train.FloatList(value=[39])),
                'workclass': tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'private'])),
                'education': tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'masters']))}))
            answer = predictor({'examples': [example.SerializeToString()]})
            print("served %.4f" % answer['logistic'][0][0], sorted(predictor.feed_tensors))


if __name__ == '__main__':
    tf.logging.set_verbosity(tf.logging.ERROR)
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
