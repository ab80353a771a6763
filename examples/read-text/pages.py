"""Code around the networks: the page to read, boxes from a probability map, text from scores."""

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

LINES = [
    "Heddle reads this page",
    "ONNX in, native code out",
    "The quick brown fox jumps",
    "over 13 lazy dogs in 2026",
    "Sizes are symbols",
]
UPSIDE_DOWN = {2}


def make_page(width=736, height=480):
    """An RGB page with LINES on it, one of them upside down."""
    page = Image.new("RGB", (width, height), (250, 248, 240))
    for number, text in enumerate(LINES):
        font = ImageFont.load_default(size=30 + 2 * (number % 3))
        left, top, right, bottom = ImageDraw.Draw(page).textbbox((0, 0), text, font=font)
        line = Image.new("RGB", (right - left + 8, bottom - top + 8), page.getpixel((0, 0)))
        ImageDraw.Draw(line).text((4 - left, 4 - top), text, font=font, fill=(20, 24, 40))
        if number in UPSIDE_DOWN:
            line = line.rotate(180)
        page.paste(line, (40 + 20 * number, 30 + 88 * number))
    return np.asarray(page)


def to_tensor(image):
    """HWC bytes to a 1CHW tensor in [-1, 1], channels in the order BGR of the training data."""
    return ((image[:, :, ::-1].astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None]


def find_boxes(probability, threshold=0.3, mean=0.5, grow=1.6):
    """The text boxes of a probability map, top to bottom, as (left, top, right, bottom).

    The post-processing of DB (Liao et al., AAAI 2020, section 3.6): the map shows shrunken text, so
    each region grows by area * grow / perimeter. Boxes stay upright here, as the page is.
    """
    mask = (probability > threshold).astype(np.uint8)
    contours, _ = cv2.findContours(cv2.dilate(mask, np.ones((2, 2))), cv2.RETR_LIST,
                                   cv2.CHAIN_APPROX_SIMPLE)
    boxes = []
    for contour in contours:
        x, y, w, h = cv2.boundingRect(contour)
        if min(w, h) < 3 or probability[y:y + h, x:x + w].mean() < mean:
            continue
        margin = int(round(w * h * grow / (2 * (w + h))))
        bottom, right = probability.shape
        boxes.append((max(x - margin, 0), max(y - margin, 0),
                      min(x + w + margin, right), min(y + h + margin, bottom)))
    return sorted(boxes, key=lambda box: (box[1], box[0]))


def fit(image, height, width=None):
    """Scales to the height, keeping proportions; with a width, cuts or pads to it with grey."""
    scaled_width = max(1, round(image.shape[1] * height / image.shape[0]))
    scaled = cv2.resize(image, (min(scaled_width, width or scaled_width), height))
    if width and scaled.shape[1] < width:
        scaled = np.pad(scaled, ((0, 0), (0, width - scaled.shape[1]), (0, 0)),
                        constant_values=128)
    return scaled


def decode(scores, alphabet):
    """Greedy CTC: the best symbol of each step, repeats merged, blanks (symbol 0) left out."""
    best = scores.argmax(axis=-1)
    changes = np.concatenate(([True], best[1:] != best[:-1]))
    return "".join(alphabet[symbol] for symbol in best[changes & (best != 0)]).strip()
