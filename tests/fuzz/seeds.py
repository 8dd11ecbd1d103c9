# SPDX-License-Identifier: Apache-2.0
"""What each fuzzer starts from: inputs by their names, a mended fault's among them."""

# An answer to `prepare`, and to `repeat`, as they should be.
_FACTS = (
    b'"facts":{"verification":{"reference":"r","steps":1,"steps_of":1,"tolerance":0.001,'
    b'"relative_error":0},"label":"x","chosen":{"execution":"eager"},"loss_first_epoch":0.7,'
    b'"params":3,"batch":1,"rows":8,"steps":2,"flops":5,"cpu_threads":1}'
)
_TIMES = b'"times":{"real_time":2.0,"cpu_time":2,"time_unit":"ms","iterations":5,"joules":1}'
_DEEP = 9_000

SEEDS: dict[str, dict[str, bytes]] = {
    "answer": {
        "deep": b'{"doubts":' + b"[" * _DEEP + b"]" * _DEEP + b"}",
        "described": (
            b'{"program":"p","version":"1","libraries":{"L":"1"},"ladders":{"l":["m"]},'
            b'"rows":[{"configuration":{"family":"Epoch"},"environment":{"A":"1"}}]}'
        ),
        "failed": b'{"outcome":"failed","error_message":"no","not_verified":{"seconds":1}}',
        "huge_count": b'{"times":{"real_time":2,"cpu_time":2,"iterations":1e30}}',
        "long": b'{"outcome":"failed","error_message":"' + b"x" * 2 * _DEEP + b'"}',
        "loss_is_null": b"{" + _FACTS.replace(b"0.7", b"null") + b',"once":{}}',
        "prepared": b"{" + _FACTS + b',"once":{"first_call_seconds":0.5}}',
        "repeated": b"{" + _TIMES + b',"doubts":["d"],"spent":{"timed":1}}',
        "reserved": b'{"facts":{"name":"x","configuration":{}},"once":{"real_time":1}}',
        "zero": b'{"times":{"real_time":0,"cpu_time":2,"iterations":1}}',
    },
    "arguments": {
        "benchmark_out": b"--benchmark_out=x.json\n--benchmark_out_format=json",
        "classes_beyond_32_bits": b"--mlp=2,3000000000",
        "control_character": b"--batch=\x1b[31m1",
        "cost": b"--cost\n--mlp=2,2",
        "family": (
            b"--family=Gemm,Epoch\n--memory-limit=1000000\n--benchmark_repetitions=3\n--v=1"
        ),
        "gpu": (
            b"--cuda=on\n"
            b"--execution=graph,eager\n"
            b"--placement=resident,pinned\n"
            b"--products=autotuned\n"
            b"--cudnn=benchmark\n"
            b"--precision=f32,tf32,bf16,f16\n"
            b"--loss=step\n"
            b"--accumulate=4"
        ),
        "graph_epoch": b"--execution=graph-epoch\n--placement=pinned",
        "help": b"--help",
        "machine": b"--machine\n--version\n--commit\n--models\n--plan",
        "mistyped": b"--treads=1",
        "mlp": (
            b"--mlp=784,512,10\n"
            b"--activation=sigmoid\n"
            b"--batch=64,128\n"
            b"--threads=1,2\n"
            b"--optimizer=adamw\n"
            b"--lr=0.1\n"
            b"--weight-decay=1e-4\n"
            b"--rows=1000"
        ),
        "model": b"--model=heart,disc-2\n--data=heart.csv\n--cuda=off",
        "no_value": b"--batch=\n--plan=1",
        "resume": b"--budget=1.5h\n--resume\n--out=r.json",
        "said_twice": b"--execution=eager,eager\n--placement=resident\n--batch=1,1",
        "sweep": b"--sweep=quick\n--out=result.json\n--benchmark_filter=Epoch",
        "tiny_budget": b"--budget=1e-320s",
    },
    "csv": {
        "blank_row": b"51,2,0\n\n3,4,1\n",
        "byte_order_mark": b"5\xef\xbb\xbfx,y,z\r\n1,2,0\r\n3,4,1\r\n",
        "carriage_returns": b"51,2,0\r3,4,1\r",
        "codes_as_labels": b"51,2,0\n3,4,1000000\n4,4,-5\n",
        "counts_the_columns": b"50,1,2\n5,2,0\n3,4,1\n",
        "counts_the_columns_or_not": b"50,1,2\n5,2,2\n3,4,1\n",
        "deletion_character": b"51,2,0\n1,\x7f,0\n",
        "empty_cell": b"51,2,0\n3,,1\n",
        "fraction_as_label": b"91,2,0.5\n",
        "header": b"5a,b,label\n1,2,0\n3,4,1",
        "label_beyond_32_bits": b"=1,2,3000000000\n",
        "index_and_columns": b"5,0,1\n5,2,0\n3,4,1\n",
        "letters_unseen": b"51,2,0\n\xc2\xa03,4\x00,1\n",
        "long_cell": (
            b"51,2,0\n1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,0\n"
        ),
        "not_finite": b"51,2,0\nnan,4,1\n",
        "one_feature": b"01,0\n2,1\n",
        "plus_and_minus": b"5+-1,2,0\n",
        "quotes_above_none": b'5"7","3","9"\n1,2,0\n3,4,1\n',
        "quotes_alone": b'11,1,1\n""',
        "quotes_and_blank_end": b'5"1","2","0"\n 3 ,\t4,1.0\n\n  \n\r\n',
        "tiny_and_signed": b"51e-400,+.5,0\n-2e-3,5.,2\n",
        "too_large": b"51,2,0\n3,1e300,1\n",
    },
    "earlier_run": {
        "bad_utf8": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,'
            b'"parts":[{"rows":1}]}},"rows":[{"name":"a","repetitions":2}],'
            b'"benchmarks":[{"name":"a","run_type":"iteration","real_time":"\xff"},{"name":"a",'
            b'"run_type":"iteration","real_time":"\xff"},{"name":"a_median","run_name":"a",'
            b'"run_type":"aggregate"}]}'
        ),
        "complete": (
            b'{"context":{"crossover":{"schema_version":2,"complete":true,'
            b'"parts":[{"rows":1}]}},"rows":[{"name":"a","repetitions":2}],'
            b'"benchmarks":[{"name":"a","run_type":"iteration","real_time":1.5},{"name":"a",'
            b'"run_type":"iteration","real_time":1.5}]}'
        ),
        "deep": b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        "deeper": b"[" * _DEEP + b"]" * _DEEP,
        "each_outcome": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,'
            b'"parts":[{"rows":1,"date":"x"},{"rows":3}]}},"rows":[{"name":"a",'
            b'"repetitions":2},{"name":"b","outcome":"skipped","error_message":"no memory"},'
            b'{"name":"c","outcome":"failed","error_message":"wrong"},{"name":"d",'
            b'"outcome":"skipped","error_message":"the GPU failed in an earlier row: '
            b'lost"}],"benchmarks":[{"name":"a","run_type":"iteration","real_time":1.5},'
            b'{"name":"a","run_type":"iteration","real_time":1.5}]}'
        ),
        "measured": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,'
            b'"parts":[{"rows":1}]}},"rows":[{"name":"a","repetitions":2}],'
            b'"benchmarks":[{"name":"a","run_type":"iteration","real_time":1.5},{"name":"a",'
            b'"run_type":"iteration","real_time":1.5},{"name":"a_median","run_name":"a",'
            b'"run_type":"aggregate"}]}'
        ),
        "negative_repetitions": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,'
            b'"parts":[{"rows":1}]}},"rows":[{"name":"a","repetitions":-1}],"benchmarks":[]}'
        ),
        "none_yet": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,"parts":[]}},'
            b'"rows":[],"benchmarks":[]}'
        ),
        "other_version": (
            b'{"context":{"crossover":{"schema_version":1,"complete":false,'
            b'"parts":[{"rows":1}]}},"rows":[{"name":"a","repetitions":2}],'
            b'"benchmarks":[{"name":"a","run_type":"iteration","real_time":1.5},{"name":"a",'
            b'"run_type":"iteration","real_time":1.5}]}'
        ),
        "parts_beyond_64_bits": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,'
            b'"parts":[{"rows":18446744073709551615},{"rows":3}]}},"rows":[{"name":"a",'
            b'"repetitions":2},{"name":"b","outcome":"skipped","error_message":"no '
            b'memory"}],"benchmarks":[{"name":"a","run_type":"iteration","real_time":1.5},'
            b'{"name":"a","run_type":"iteration","real_time":1.5}]}'
        ),
        "repetitions_beyond_64_bits": (
            b'{"context":{"crossover":{"schema_version":2,"complete":false,'
            b'"parts":[{"rows":1}]}},"rows":[{"name":"a",'
            b'"repetitions":18446744073709551615}],"benchmarks":[]}'
        ),
    },
    "network": {
        "does_not_fit": (
            b'{"name": "m", "input": {"shape": [1, 8, 8], "type": "f32"}, "classes": 3, '
            b'"loss": "cross_entropy", "layers": [{"name": "stem", "type": "conv2d", '
            b'"out_channels": 3, "kernel_size": 3, "padding": 1}, {"type": "batch_norm"}, '
            b'{"type": "relu"}, {"type": "conv2d", "out_channels": 3, "kernel_size": 1, '
            b'"bias": false}, {"type": "add", "inputs": ["layer 3", "stem"]}, {"type": '
            b'"max_pool2d", "kernel_size": 2}, {"type": "global_avg_pool2d"}, {"type": '
            b'"dropout", "p": 0.25}, {"type": "linear", "out_features": 2}], "training": '
            b'{"rows": 40, "batch": 10, "optimizer": "adamw", "learning_rate": 0.001, '
            b'"weight_decay": 0.01}}'
        ),
        "image": (
            b'{"name": "m", "input": {"shape": [1, 8, 8], "type": "f32"}, "classes": 2, '
            b'"loss": "cross_entropy", "layers": [{"name": "stem", "type": "conv2d", '
            b'"out_channels": 3, "kernel_size": 3, "padding": 1}, {"type": "batch_norm"}, '
            b'{"type": "relu"}, {"type": "conv2d", "out_channels": 3, "kernel_size": 1, '
            b'"bias": false}, {"type": "add", "inputs": ["layer 3", "stem"]}, {"type": '
            b'"max_pool2d", "kernel_size": 2}, {"type": "global_avg_pool2d"}, {"type": '
            b'"dropout", "p": 0.25}, {"type": "linear", "out_features": 2}], "training": '
            b'{"rows": 40, "batch": 10, "optimizer": "adamw", "learning_rate": 0.001, '
            b'"weight_decay": 0.01}}'
        ),
        "joined": (
            b'{"name": "m", "input": {"shape": [2, 4, 4], "type": "f32"}, "classes": 2, '
            b'"loss": "cross_entropy", "layers": [{"name": "a", "type": "conv2d", '
            b'"out_channels": 3, "kernel_size": 1}, {"type": "global_avg_pool2d"}, {"type": '
            b'"multiply", "inputs": ["a", "layer 1"]}, {"type": "concatenate", "inputs": '
            b'["layer 2", "input"]}, {"type": "to_sequence"}, {"type": "class_token"}, '
            b'{"name": "n", "type": "rms_norm", "eps": 0.001}, {"name": "f", "type": '
            b'"first_place"}, {"name": "l", "type": "last_place", "inputs": ["n"]}, '
            b'{"name": "m", "type": "mean_over_time", "inputs": ["n"]}, {"type": '
            b'"concatenate", "inputs": ["f", "l", "m"]}, {"type": "linear", "out_features": '
            b"2}]}\n"
        ),
        "larger": (
            b'{"name": "m", "input": {"shape": [3, 4, 4], "type": "f32"}, "outputs": 648, '
            b'"loss": "mse", "layers": [{"type": "conv_transpose2d", "out_channels": 4, '
            b'"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "bias": '
            b'false}, {"type": "conv_transpose2d", "out_channels": 2, "kernel_size": 2, '
            b'"groups": 2, "dilation": 1}, {"type": "group_norm", "num_groups": 2, "eps": '
            b'0.001}, {"type": "upsample", "scale_factor": 2}, {"type": "flatten"}]}\n'
        ),
        "line": (
            b'{"name": "m", "input": {"shape": [2, 1, 16], "type": "f32"}, "classes": 3, '
            b'"loss": "cross_entropy", "layers": [{"type": "conv2d", "out_channels": 4, '
            b'"kernel_size": [1, 5], "stride": [1, 2], "padding": [0, 4], "dilation": [1, '
            b'2]}, {"type": "max_pool2d", "kernel_size": [1, 2], "ceil_mode": true}, '
            b'{"type": "conv_transpose2d", "out_channels": 4, "kernel_size": [1, 3], '
            b'"stride": [1, 2], "output_padding": [0, 1]}, {"type": "upsample", '
            b'"scale_factor": [2, 1]}, {"type": "global_avg_pool2d"}, {"type": "linear", '
            b'"out_features": 3}]}\n'
        ),
        "parts": (
            b'{"name": "p", "input": {"shape": [6], "type": "i32"}, "outputs": 2, "loss": '
            b'"bce", "layers": [{"name": "item", "type": "slice", "to": 1}, {"name": "seen",'
            b' "type": "slice", "from": 1, "to": 6, "inputs": ["input"]}, {"type": '
            b'"embedding", "num_embeddings": 7, "embedding_dim": 4}, {"name": "h", "type": '
            b'"gru", "hidden_size": 4}, {"name": "part", "type": "slice", "from": 1, "to": '
            b'4, "over_time": true}, {"name": "scores", "type": "matmul", "transpose": true,'
            b' "num_heads": 2, "scale": 0.5, "inputs": ["part", "part"]}, {"type": '
            b'"softmax", "num_heads": 2, "causal": true}, {"type": "matmul", "num_heads": 2,'
            b' "inputs": ["layer 6", "part"]}, {"name": "last", "type": "last_place"}, '
            b'{"type": "embedding", "num_embeddings": 9, "embedding_dim": 4, "inputs": '
            b'["item"]}, {"type": "first_place"}, {"type": "matmul", "transpose": true, '
            b'"inputs": ["last", "layer 10"]}, {"type": "linear", "out_features": 2}]}'
        ),
        "tokens": (
            b'{"name": "t", "input": {"shape": [5], "type": "i32"}, "classes": 7, "labels": '
            b'[5], "loss": "cross_entropy", "layers": [{"type": "embedding", '
            b'"num_embeddings": 7, "embedding_dim": 4}, {"type": "lstm", "hidden_size": 4}, '
            b'{"type": "linear", "out_features": 7}], "training": {"optimizer": "sgd"}}'
        ),
        "too_many": (
            b'{"name": "big", "input": {"shape": [2147483648], "type": "f32"}, "classes": 2,'
            b' "loss": "cross_entropy", "layers": [{"type": "linear", "out_features": '
            b'2147483648}, {"type": "linear", "out_features": 2}]}'
        ),
    },
}
