"""recurrent: layers along a sequence that torch has whole. SPDX-License-Identifier: Apache-2.0"""

import torch

from .table import aten, builds, value_of

LSTM = 2  # of torch's modes
GATES = (0, 3, 1, 2)  # ONNX's input, output, forget, cell among torch's


@builds(aten.mkldnn_rnn_layer)
def lstm(t, input, weight0, weight1, weight2, weight3, hx_, cx_, reverse,  # noqa: A002
         batch_sizes, mode, hidden_size, num_layers, has_biases, bidirectional, batch_first, train):
    """One layer in one direction."""
    if mode != LSTM or len(batch_sizes) or train or value_of(input).dim() != 3:
        t.refuse("oneDNN's recurrent layer is supported only of an LSTM without packed sequences, "
                 "in inference")

    def ordered(weight):
        sizes = value_of(weight).shape[1:]
        gates = t.op("Gather", t.reshape(weight, [4, hidden_size, *sizes]), t.ints(*GATES), axis=0)
        return t.reshape(gates, [1, 4 * hidden_size, *sizes])

    biases = None
    if has_biases:
        biases = t.op("Concat", ordered(weight2), ordered(weight3), axis=1)
    batch = value_of(input).shape[1]
    states = [t.reshape(x, [1, batch, hidden_size]) for x in (hx_, cx_)]
    y, hidden, cell = t.op("LSTM", input, ordered(weight0), ordered(weight1), biases, None, *states,
                           outputs=3, hidden_size=hidden_size,
                           direction="reverse" if reverse else "forward")
    found = (t.reshape(x, out.shape) for x, out in zip((y, hidden, cell), t.out))
    return *found, t.constant(torch.zeros(0, dtype=torch.uint8))
