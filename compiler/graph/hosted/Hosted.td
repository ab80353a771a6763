// Hosted.td: ops on lists of tensors, strings and image files, and what a run is told. No kernel computes them: the program around the
// kernels calls services of the runtime.
//
// A list is a scalar tensor of the element type !graph.list: one handle of 8 bytes to an immutable
// list in the run's memory, so that control flow carries it as it carries any tensor. A string is
// a `!graph.string`, see Graph.td.
#ifndef HEDDLE_GRAPH_HOSTED_HOSTED_TD
#define HEDDLE_GRAPH_HOSTED_HOSTED_TD

include "compiler/graph/Graph.td"

def Graph_Hosted : Graph_Trait<"Hosted">;
def Graph_OnStrings : Graph_Trait<"OnStrings">;
class Graph_HostedOp<string mnemonic, list<Trait> traits = []>
    : Graph_TypedOp<mnemonic, !listconcat([Graph_Hosted], traits)>;

// Constraints of ops on lists and strings.
defvar Graph_IsList = "LS1: lists are scalars of the element type !graph.list.";
defvar Graph_OfListElement = "LS2: what is put in or taken out has the element type of the list.";
defvar Graph_IsPosition = "LS3: a position is one i32 or i64.";
defvar Graph_IsString = "ST1: what is to be strings has their element type.";

def Graph_ListMakeOp : Graph_HostedOp<"list_make"> {
  let summary = "a list of copies of tensors";
  let description = [{
    Without xs: an empty list; of an optional kind, an absent one.
  }];
  let constraints = [Graph_IsList, Graph_OfListElement, "LS4: an optional holds at most one tensor."];
  let arguments = (ins Variadic<Graph_Tensor>:$xs);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListInsertOp : Graph_HostedOp<"list_insert"> {
  let summary = "the list with x before `position`, or at its end";
  let description = "A negative position counts from the end. The run refuses one outside of [-n, n].";
  let constraints = [Graph_IsList, Graph_OfListElement, Graph_IsPosition];
  let arguments = (ins Graph_Tensor:$list, Graph_Tensor:$x, Optional<Graph_Tensor>:$position);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListEraseOp : Graph_HostedOp<"list_erase"> {
  let summary = "the list without the tensor at `position`, or without the last one";
  let constraints = [Graph_IsList, Graph_IsPosition];
  let arguments = (ins Graph_Tensor:$list, Optional<Graph_Tensor>:$position);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListAtOp : Graph_BindingOp<"list_at", [Graph_Hosted]> {
  let summary = "the tensor at `position`, or the only one of an optional";
  let description = [{
    Its sizes are fresh symbols, which this op binds; the run refuses a tensor of another rank, and a position outside of [-n, n).
  }];
  let constraints = [Graph_IsList, Graph_OfListElement, Graph_IsPosition];
  let arguments = (ins Graph_Tensor:$list, Optional<Graph_Tensor>:$position);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListLengthOp : Graph_HostedOp<"list_length"> {
  let summary = "how many tensors there are, as an i64; -1 of an absent optional";
  let constraints = [Graph_IsList];
  let arguments = (ins Graph_Tensor:$list);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListRankOp : Graph_HostedOp<"list_rank"> {
  let summary = "the rank of the tensor of a list of the kind any_rank, as an i64";
  let constraints = [Graph_IsList];
  let arguments = (ins Graph_Tensor:$list);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListConcatOp : Graph_BindingOp<"list_concat", [Graph_Hosted]> {
  let summary = "all tensors of a list joined along `axis`, or stacked along a new one";
  let description = "Sizes of the result are fresh symbols, which this op binds. The run refuses an empty list.";
  let constraints = [Graph_IsList, Graph_OfListElement, Graph_AxisOfResult];
  let arguments = (ins Graph_Tensor:$list, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$new_axis);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListSplitOp : Graph_HostedOp<"list_split"> {
  let summary = "pieces of x along `axis`";
  let description = [{
    `sizes`: a scalar, the size of all pieces but perhaps the last; or a vector, the size of each, whose sum the run holds against
    that of x; default: 1. Without `keep_dims`, which needs pieces of size 1, they have no such axis.
  }];
  let constraints = [Graph_IsList, Graph_OfListElement, Graph_AxisOfX,
                     "LS5: `sizes` is a scalar or a vector of integers."];
  let arguments = (ins Graph_Tensor:$x, Optional<Graph_Tensor>:$sizes, I64Attr:$axis,
                       DefaultValuedAttr<BoolAttr, "true">:$keep_dims);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ListCastOp : Graph_HostedOp<"list_cast"> {
  let summary = "the same list as another kind of list, or with another promise of rank";
  let description = "The run refuses an absent optional where the result must be there.";
  let constraints = [Graph_IsList, "LS6: the lists have one element type."];
  let arguments = (ins Graph_Tensor:$list);
  let results = (outs Graph_Tensor:$result);
}

def Graph_StringConcatOp : Graph_HostedOp<"string_concat", [Graph_OnStrings]> {
  let summary = "each string of x followed by that of y; both of one shape";
  let constraints = [Graph_OneShape, Graph_IsString];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$y);
  let results = (outs Graph_Tensor:$result);
}

def Graph_StringSplitOp : Graph_BindingOp<"string_split", [Graph_Hosted, Graph_OnStrings]> {
  let summary = "the pieces of each string between delimiters, and how many there are";
  let description = [{
    pieces: [shape of x, n], where n, the largest number of pieces, is a fresh symbol which this op binds; filled up with
    empty strings. An empty delimiter: runs of white space, of which leading and trailing ones count for nothing.
    `most`: the most cuts in one string, or -1.
    A delimiter may also be an automaton that reads bytes, i32[states, 259]. Pieces are then by turns what lies before the
    next match and this match, the longest of the first; a match without bytes takes the letter after it away.
    `delimiter[s, byte]` is the state after s, or -1. It starts in state 0, 1 or 2, where the string begins, another byte
    comes before, or a letter, digit or `_`; the columns 256 to 258 say whether it accepts before each of these.
  }];
  let constraints = [Graph_IsString, "SP1: `pieces` has one dimension more than x.",
                     "SP2: `delimiter` is a string or i32[states, 259]."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$delimiter, DefaultValuedAttr<I64Attr, "-1">:$most);
  let results = (outs Graph_Tensor:$pieces, Graph_Tensor:$counts);
}

def Graph_StringNormalizeOp : Graph_BindingOp<"string_normalize", [Graph_Hosted, Graph_OnStrings]> {
  let summary = "the strings of a vector, or of a matrix of one row, that are no stop words, in one case";
  let description = [{
    `letter_case`: none, lower or upper, by the simple case mapping of Unicode. How many remain is a fresh symbol, which this op
    binds; where none does, the result is one empty string. Without `case_sensitive` stop words match in any case.
  }];
  let constraints = [Graph_IsString, "NO1: x has rank 1 or 2, the result the same.",
                     "NO2: `letter_case` is none, lower or upper."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$stopwords, StrAttr:$letter_case,
                       DefaultValuedAttr<BoolAttr, "false">:$case_sensitive);
  let results = (outs Graph_Tensor:$result);
}

def Graph_StringMatchOp : Graph_HostedOp<"string_match", [Graph_OnStrings]> {
  let summary = "whether an automaton accepts all bytes of each string";
  let description = [{
    transitions: i32[states, 257], the next state for each byte, -1 for none; the last column is 1 where a state accepts. It
    starts in state 0.
  }];
  let constraints = [Graph_IsString, "MA1: `transitions` is i32[states, 257]."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$transitions);
  let results = (outs Graph_Tensor:$result);
}

def Graph_StringCastOp : Graph_HostedOp<"string_cast", [Graph_OnStrings]> {
  let summary = "numbers as decimal strings, or strings as numbers";
  let description = [{
    Floats: the shortest decimal that reads as the same number, as NumPy spells it. The run refuses a string that is no number.
  }];
  let constraints = [Graph_OneShape, "CA1: either the operand or the result has strings."];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
}

def Graph_RunSeedOp : Graph_HostedOp<"run_seed"> {
  let summary = "the seed of this run's random numbers";
  let description = "One number, which the caller of the run decides; 0 in the first run of a session.";
  let constraints = ["SD1: the result is one ui64."];
  let arguments = (ins);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ImageDecodeOp : Graph_BindingOp<"image_decode", [Graph_Hosted]> {
  let summary = "the pixels of an image file";
  let description = [{
    x: ui8[n], the bytes of a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file. result: ui8[height, width, channels] by
    `pixel_format`: rgb, bgr, or gray of one channel. Height and width are fresh symbols, which this op binds. The run refuses
    other bytes, and a machine without the library that reads images.
  }];
  let constraints = ["IM1: x is ui8[n], the result ui8[height, width, channels].", "IM2: `pixel_format` is rgb, bgr or gray.",
                     "IM3: gray has one channel, the others three."];
  let arguments = (ins Graph_Tensor:$x, StrAttr:$pixel_format);
  let results = (outs Graph_Tensor:$result);
}

#endif // HEDDLE_GRAPH_HOSTED_HOSTED_TD
