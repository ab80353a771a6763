"""generators: graphs of the families that the GO paper optimizes (Zhou et al., NeurIPS 2020), with
knobs of depth and width. All are steps of training unless `training` is False.

`generate("gnmt", layers=8, steps=40)` has about 40,000 nodes; the paper's has 80,000.
SPDX-License-Identifier: Apache-2.0
"""

from heddle import UsageError

from .layers import Layers


def _finish(layers, loss, training):
    if training:
        layers.with_backward(loss)
    layers.colocate_resident()
    return layers.graph()


def _loss(b, x, rows, inner, classes):
    logits = b.dense(x, b.variable(inner * classes), b.variable(classes), rows, inner, classes)
    return b.reduce(b.softmax(logits), 1)


def _lstm_stack(b, sequence, layers, batch, inputs, size):
    """Layers of LSTM over a list of values; returns the last layer's."""
    for layer in range(layers):
        width = inputs if layer == 0 else size
        weight = b.variable((width + size) * 4 * size)
        bias = b.variable(4 * size)
        h, c = b.input(batch * size), b.input(batch * size)
        outputs = []
        for x in sequence:
            h, c = b.lstm_cell(x, h, c, weight, bias, batch, width, size)
            outputs.append(h)
        sequence = outputs
    return sequence


def rnnlm(layers=2, steps=20, batch=64, size=1024, vocabulary=10000, training=True):
    """Language model of stacked LSTMs (Jozefowicz et al., 2016)."""
    b = Layers(f"rnnlm-{layers}")
    table = b.variable(vocabulary * size)
    words = [b.gather(table, b.input(batch), batch * size) for _ in range(steps)]
    outputs = _lstm_stack(b, words, layers, batch, size, size)
    return _finish(b, _loss(b, b.move(*outputs), batch * steps, size, vocabulary), training)


def _attend(b, query, keys, batch, length, size):
    scores = b.softmax(b.matmul(keys, query, length, size, 1, batch))
    return b.matmul(scores, keys, 1, length, size, batch)


def gnmt(layers=2, steps=20, batch=64, size=1024, vocabulary=16000, training=True):
    """Translation: an encoder whose first layer runs both ways, a decoder with attention at each
    step (Wu et al., 2016)."""
    b = Layers(f"gnmt-{layers}")
    source, target = b.variable(vocabulary * size), b.variable(vocabulary * size)
    words = [b.gather(source, b.input(batch), batch * size) for _ in range(steps)]
    ahead = _lstm_stack(b, words, 1, batch, size, size)
    back = _lstm_stack(b, words[::-1], 1, batch, size, size)[::-1]
    both = [b.move(x, y) for x, y in zip(ahead, back)]
    encoded = _lstm_stack(b, both, layers - 1, batch, 2 * size, size) if layers > 1 else both
    width = size if layers > 1 else 2 * size
    keys = b.dense(b.move(*encoded), b.variable(width * size), b.variable(size), batch * steps,
                   width, size)
    weights = [(b.variable(3 * size * 4 * size), b.variable(4 * size)) for _ in range(layers)]
    states = [(b.input(batch * size), b.input(batch * size)) for _ in range(layers)]
    outputs = []
    for _ in range(steps):
        x = b.gather(target, b.input(batch), batch * size)
        context = _attend(b, states[0][0], keys, batch, steps, size)
        for layer, (weight, bias) in enumerate(weights):
            h, c = states[layer]
            h, c = b.lstm_cell(b.move(x, context), h, c, weight, bias, batch, 2 * size, size)
            x = b.elementwise(x, h) if layer > 1 else h
            states[layer] = h, c
        outputs.append(x)
    return _finish(b, _loss(b, b.move(*outputs), batch * steps, size, vocabulary), training)


def transformer_xl(layers=4, segments=2, batch=16, length=128, size=512, heads=8, training=True):
    """Transformer-XL: attends to the segment before, by relative positions (Dai et al., 2019)."""
    b = Layers(f"transformer_xl-{layers}")
    vocabulary, rows, inner = 8000, batch * length, 4 * size
    table, positions = b.variable(vocabulary * size), b.input(2 * length * size)
    weights = [{name: b.variable(count) for name, count in
                {"q": size**2, "k": size**2, "v": size**2, "r": size**2, "o": size**2,
                 "u": size, "n1": 2 * size, "n2": 2 * size, "f1": size * inner, "b1": inner,
                 "f2": inner * size, "b2": size}.items()} for _ in range(layers)]
    memory, losses = [b.input(rows * size) for _ in range(layers)], []
    head, bias = b.variable(size * vocabulary), b.variable(vocabulary)
    for _ in range(segments):
        x = b.gather(table, b.input(rows), rows * size)
        for layer, w in enumerate(weights):
            both = b.move(memory[layer], x)
            memory[layer] = x
            q = b.matmul(x, w["q"], rows, size, size)
            k = b.matmul(both, w["k"], 2 * rows, size, size)
            v = b.matmul(both, w["v"], 2 * rows, size, size)
            r = b.matmul(positions, w["r"], 2 * length, size, size)
            each, count = size // heads, batch * heads
            content = b.matmul(b.elementwise(q, w["u"]), k, length, each, 2 * length, count)
            place = b.move(b.matmul(q, r, length, each, 2 * length, count),
                           elements=content.elements)
            scores = b.softmax(b.elementwise(b.elementwise(content, place)))
            y = b.move(b.matmul(scores, v, length, 2 * length, each, count), elements=rows * size)
            y = b.elementwise(b.matmul(y, w["o"], rows, size, size), x)
            x = b.normalize(y, w["n1"])
            y = b.activation(b.dense(x, w["f1"], w["b1"], rows, size, inner))
            y = b.elementwise(b.dense(y, w["f2"], w["b2"], rows, inner, size), x)
            x = b.normalize(y, w["n2"])
        losses.append(b.softmax(b.dense(x, head, bias, rows, size, vocabulary)))
    return _finish(b, b.reduce(b.move(*losses), 1), training)


def inception(modules=9, batch=32, width=64, training=True):
    """Inception-v3's mixed modules of four branches (Szegedy et al., 2016)."""
    b = Layers(f"inception-{modules}")
    side, channels = 35, 3 * width
    x = b.conv(b.input(batch * 149 * 149 * 3), batch, 71 * 71, 3, width, 9)
    x = b.pool(b.conv(x, batch, 71 * 71, width, channels, 9), batch * side**2 * channels, 9)
    for module in range(modules):
        if module in (modules // 3, 2 * modules // 3) and module:
            side = (side - 1) // 2
            x = b.move(b.conv(x, batch, side**2, channels, channels // 2, 9),
                       b.pool(x, batch * side**2 * channels, 9))
            channels += channels // 2
        pixels = side**2
        one = b.conv(x, batch, pixels, channels, width, 1)
        two = b.conv(b.conv(x, batch, pixels, channels, width, 1), batch, pixels, width, width, 7)
        two = b.conv(two, batch, pixels, width, width, 7)
        three = b.conv(x, batch, pixels, channels, width, 1)
        for _ in range(4):
            three = b.conv(three, batch, pixels, width, width, 7)
        four = b.conv(b.pool(x, batch * pixels * channels, 9), batch, pixels, channels, width, 1)
        x, channels = b.move(one, two, three, four), 4 * width
    pooled = b.reduce(x, batch * channels)
    return _finish(b, _loss(b, pooled, batch, channels, 1000), training)


def amoebanet(cells=6, batch=32, filters=96, training=True):
    """AmoebaNet: cells of five pairs of branches over the two cells before (Real et al., 2019)."""
    b = Layers(f"amoebanet-{cells}")
    side = 28
    before = x = b.conv(b.input(batch * 56 * 56 * 3), batch, side**2, 3, filters, 9)
    wide = previous = filters
    for cell in range(cells):
        if cell and cell % max(1, cells // 3) == 0:
            side, filters = (side + 1) // 2, 2 * filters
        pixels, elements = side**2, batch * side**2 * filters
        states = [b.conv(before, batch, pixels, previous, filters, 1),
                  b.conv(x, batch, pixels, wide, filters, 1)]
        for pair, (left, right) in enumerate(((0, 0), (1, 1), (0, 1), (2, 0), (1, 3))):
            def separable(value, window):
                deep = b.conv(value, batch, pixels, 1, filters, window)
                return b.conv(deep, batch, pixels, filters, filters, 1)
            one = separable(states[left], 9) if pair % 2 else b.pool(states[left], elements, 9)
            two = separable(states[right], 25 if pair > 2 else 9)
            states.append(b.elementwise(one, two))
        before, previous = x, wide
        x, wide = b.move(*states[3:]), filters * len(states[3:])
    pooled = b.reduce(x, batch * wide)
    return _finish(b, _loss(b, pooled, batch, wide, 1000), training)


def wavenet(stacks=2, layers=9, batch=8, length=4000, channels=128, training=True):
    """WaveNet: stacks of dilated convolutions with gates, and a sum of all layers (van den Oord et
    al., 2016)."""
    b = Layers(f"wavenet-{stacks}x{layers}")
    rows = batch * length
    x = b.conv(b.input(rows), batch, length, 1, channels, 2)
    skips = []
    for _ in range(stacks * layers):
        def filters(value, window):
            weight = b.variable(window * channels**2)
            y = b.product("conv", value, weight, rows * channels, window * channels)
            return b.elementwise(y, b.variable(channels))
        gate = b.elementwise(b.activation(filters(x, 2)), b.activation(filters(x, 2)))
        skips.append(filters(gate, 1))
        if len(skips) < stacks * layers:
            x = b.elementwise(filters(gate, 1), x)
    total = skips[0]
    for skip in skips[1:]:
        total = b.elementwise(total, skip)
    return _finish(b, _loss(b, b.activation(total), rows, channels, 256), training)


FAMILIES = {"rnnlm": rnnlm, "gnmt": gnmt, "transformer_xl": transformer_xl,
            "inception": inception, "amoebanet": amoebanet, "wavenet": wavenet}


def generate(family, **knobs):
    """A graph of a family by name."""
    if family not in FAMILIES:
        raise UsageError(f"unknown family '{family}'; known: {', '.join(FAMILIES)}")
    try:
        return FAMILIES[family](**knobs)
    except TypeError as error:
        names = FAMILIES[family].__code__
        known = ", ".join(names.co_varnames[:names.co_argcount])
        raise UsageError(f"family '{family}': {error}; its knobs: {known}") from None
