// session: see session.h. A run takes its feeds by name, lets go of Python's lock while the model
// runs, and gives its results as a list. SPDX-License-Identifier: Apache-2.0
#include "python/extension/session.h"

#include "python/extension/dlpack.h"
#include "python/extension/feed.h"
#include "python/extension/library.h"
#include "python/extension/result.h"
#include "python/extension/tensor.h"

#include <new>

namespace heddle::python {
namespace {

struct State {
  heddle_session_t *session = nullptr;
  std::vector<Value> inputs, outputs;
  std::vector<Ref> bound;      // a heddle.Tensor for each input, or none
  Ref inputInfos, outputInfos; // lists of heddle.NodeArg
  bool isProfiled = false;
};

struct Object {
  PyObject_HEAD State *state; // NULL until __init__ has succeeded
};

Object *self(PyObject *object) { return reinterpret_cast<Object *>(object); }

/// Results, which go back to the runtime unless they are taken over.
struct Results {
  std::vector<heddle_tensor_t> tensors;
  explicit Results(size_t count) : tensors(count) {}
  ~Results() {
    for (heddle_tensor_t &tensor : tensors)
      if (tensor.owner)
        api.tensor_release(&tensor);
  }
};

bool readInteger(PyObject *object, const char *name, int32_t &value) {
  Ref found(PyObject_GetAttrString(object, name));
  value = found ? int32_t(PyLong_AsLong(found.get())) : 0;
  return !PyErr_Occurred();
}

bool readInfos(PyObject *infos, bool areInputs, std::vector<Value> &values) {
  for (Py_ssize_t i = 0, count = PyList_Size(infos); i < count; ++i) {
    PyObject *info = PyList_GetItem(infos, i);
    Value value;
    int32_t encoding = 0, shares = 0;
    value.name = Ref(PyObject_GetAttrString(info, "name"));
    if (!value.name || !readInteger(info, "dtype", value.dtype) ||
        !readInteger(info, "kind", value.kind) || !readInteger(info, "rank", value.rank) ||
        !readInteger(info, "encoding", encoding) || !readInteger(info, "shares", shares))
      return false;
    value.isWritten = areInputs && shares >= 0;
    value.isMap = encoding != HEDDLE_DENSE;
    values.push_back(std::move(value));
  }
  return true;
}

/// __init__(module, threads, inputs, outputs, profile=0): the address of a module, lists of
/// NodeArg, and the address of a heddle_session_options_t.profile.
int initialize(PyObject *object, PyObject *arguments, PyObject *) {
  unsigned long long module;
  PyObject *inputs, *outputs;
  heddle_session_options_t options = {};
  options.size = sizeof options;
  unsigned long long profile = 0;
  if (!PyArg_ParseTuple(arguments, "KiO!O!|K", &module, &options.threads, &PyList_Type, &inputs,
                        &PyList_Type, &outputs, &profile))
    return -1;
  options.profile = reinterpret_cast<decltype(options.profile)>(uintptr_t(profile));
  if (self(object)->state || !api.session_create) {
    PyErr_SetString(PyExc_RuntimeError, "a session is initialised once, by heddle.Session");
    return -1;
  }
  try {
    auto state = std::make_unique<State>();
    state->isProfiled = profile;
    state->inputInfos = Ref::borrow(inputs);
    state->outputInfos = Ref::borrow(outputs);
    if (!readInfos(inputs, true, state->inputs) || !readInfos(outputs, false, state->outputs))
      return -1;
    state->bound.resize(state->inputs.size());
    heddle_status_t *status = api.session_create(
        reinterpret_cast<heddle_module_t *>(uintptr_t(module)), &options, &state->session);
    if (status) {
      raise(status);
      return -1;
    }
    self(object)->state = state.release();
    return 0;
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
    return -1;
  }
}

/// NULL with an exception set where a subclass has not called __init__.
State *stateOf(PyObject *object) {
  if (!self(object)->state)
    PyErr_SetString(PyExc_RuntimeError, "the session was never initialised: __init__ of a subclass "
                                        "of heddle.Session calls super().__init__(module)");
  return self(object)->state;
}

void destroy(PyObject *object) {
  State *state = self(object)->state;
  if (state && state->session) {
    Py_BEGIN_ALLOW_THREADS // its workers end
        api.session_destroy(state->session);
    Py_END_ALLOW_THREADS
  }
  delete state;
  PyTypeObject *own = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(own, Py_tp_free))(object);
  Py_DECREF(reinterpret_cast<PyObject *>(own));
}

/// The places of outputs that were asked for by name; none: all.
bool choose(const State &state, PyObject *names, std::vector<size_t> &chosen) {
  if (!names || names == Py_None) {
    for (size_t i = 0; i < state.outputs.size(); ++i)
      chosen.push_back(i);
    return true;
  }
  Ref listed;
  if (PyUnicode_Check(names)) // one name, which is no list of letters
    listed = Ref(PyTuple_Pack(1, names));
  else
    listed = Ref(PySequence_Tuple(names));
  if (!listed)
    return false;
  Py_ssize_t count = PyTuple_Size(listed.get());
  if (count == 0)
    return choose(state, nullptr, chosen);
  Ref wrong(PyList_New(0));
  for (Py_ssize_t i = 0; wrong && i < count; ++i) {
    PyObject *name = PyTuple_GetItem(listed.get(), i);
    // Most ask in the model's order.
    size_t guess = chosen.empty() ? 0 : chosen.back() + 1, found = state.outputs.size();
    for (size_t j = 0; j < state.outputs.size() && found == state.outputs.size(); ++j) {
      size_t at = (guess + j) % state.outputs.size();
      PyObject *own = state.outputs[at].name.get();
      if (own == name || (PyUnicode_Check(name) && PyUnicode_Compare(own, name) == 0))
        found = at;
    }
    if (found < state.outputs.size())
      chosen.push_back(found);
    else if (PyList_Append(wrong.get(), name) < 0)
      return false;
  }
  if (!wrong)
    return false;
  if (PyList_Size(wrong.get()) == 0)
    return true;
  Ref known(PyList_New(0));
  for (const Value &value : state.outputs)
    if (!known || PyList_Append(known.get(), value.name.get()) < 0)
      return false;
  raise(HEDDLE_USAGE, "no output is called %R; there are %R", wrong.get(), known.get());
  return false;
}

/// Whether `feeds` is a dict that has what the model takes, or has bound, and nothing else.
bool fits(const State &state, PyObject *feeds) {
  if (!PyDict_Check(feeds))
    return false;
  Py_ssize_t given = 0;
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    if (PyDict_GetItemWithError(feeds, state.inputs[i].name.get()))
      ++given;
    else if (!state.bound[i])
      return false;
  }
  return given == PyDict_Size(feeds);
}

/// The names of inputs that are bound.
Ref boundNames(const State &state) {
  Ref names(PyList_New(0));
  for (size_t i = 0; names && i < state.inputs.size(); ++i)
    if (state.bound[i] && PyList_Append(names.get(), state.inputs[i].name.get()) < 0)
      return {};
  return names;
}

bool feedAll(const State &state, PyObject *given, heddle_tensor_t *tensors, Keep &keep) {
  Ref feeds = Ref::borrow(given);
  if (!fits(state, given)) {
    if (PyErr_Occurred())
      return false;
    // Maps, other mappings than dicts, and messages.
    Ref names = boundNames(state);
    if (!names)
      return false;
    feeds = Ref(
        PyObject_CallMethod(arrays, "complete", "OOO", given, state.inputInfos.get(), names.get()));
    if (!feeds)
      return false;
  }
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    // Held meanwhile: what a value's own code does may take it out of the dict.
    Ref value = Ref::borrow(PyDict_GetItemWithError(feeds.get(), state.inputs[i].name.get()));
    if (!value && !PyErr_Occurred() && state.bound[i])
      value = Ref::borrow(state.bound[i].get());
    if (!value) {
      if (!PyErr_Occurred())
        raise(HEDDLE_USAGE, "input '%U' was taken out of the feeds meanwhile",
              state.inputs[i].name.get());
      return false;
    }
    if (!feed(value.get(), state.inputs[i], tensors[i], keep))
      return false;
  }
  return true;
}

Ref shapeOf(const heddle_tensor_t &tensor) {
  Ref list(PyList_New(tensor.rank));
  for (int i = 0; list && i < tensor.rank; ++i)
    PyList_SetItem(list.get(), i, PyLong_FromLongLong(tensor.dims[i]));
  return list;
}

/// Whether a result has the shape of its place; sizes known only at run time fit.
bool hasShape(const Value &value, const heddle_tensor_t &place, const heddle_tensor_t &result,
              const char *what) {
  bool isEqual = place.rank == result.rank;
  for (int i = 0; isEqual && i < place.rank; ++i)
    isEqual = result.dims[i] == HEDDLE_UNKNOWN || result.dims[i] == place.dims[i];
  if (isEqual)
    return true;
  Ref has = shapeOf(place), gives = shapeOf(result);
  if (has && gives)
    raise(HEDDLE_USAGE, "output '%U': its place in 'out' has the shape %S, but %s %S",
          value.name.get(), has.get(), what, gives.get());
  return false;
}

/// Memory of the caller's for some results: {name: buffer}.
struct Places {
  std::vector<heddle_tensor_t> tensors; // as they were given; none without `out`
  std::vector<PyObject *> objects; // NULL where the runtime allocates; the dict's copy holds them
  Ref held;

  bool read(const State &state, PyObject *out, Keep &keep) {
    if (!out || out == Py_None)
      return true;
    if (!PyDict_Check(out)) {
      raise(HEDDLE_USAGE, "'out' is a %S, but {name of an output: array} is allowed",
            reinterpret_cast<PyObject *>(Py_TYPE(out)));
      return false;
    }
    held = Ref(PyDict_Copy(out));
    if (!held)
      return false;
    tensors.resize(state.outputs.size());
    objects.resize(state.outputs.size());
    Py_ssize_t at = 0;
    PyObject *name, *buffer;
    while (PyDict_Next(held.get(), &at, &name, &buffer)) {
      std::vector<size_t> found;
      Ref names(PyTuple_Pack(1, name));
      if (!names || !choose(state, names.get(), found))
        return false;
      objects[found[0]] = buffer;
      if (!place(buffer, state.outputs[found[0]], tensors[found[0]], keep))
        return false;
    }
    return true;
  }
};

/// Points results at their places, once it is clear that they will have the shapes of these.
bool usePlaces(const State &state, const Places &places, const heddle_tensor_t *inputs,
               heddle_tensor_t *outputs) {
  size_t count = state.outputs.size();
  heddle_status_t *status =
      api.session_output_shapes(state.session, inputs, state.inputs.size(), outputs, count);
  if (status) {
    raise(status);
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    bool isFitting = !places.objects[i] ||
                     hasShape(state.outputs[i], places.tensors[i], outputs[i], "the run gives");
    if (!isFitting)
      return false;
    outputs[i] = {};
    if (places.objects[i]) {
      outputs[i].data = places.tensors[i].data;
      outputs[i].bytes = places.tensors[i].bytes;
    }
  }
  return true;
}

/// The form of results: arrays, heddle.Tensors, or tensors of another package.
struct Form {
  bool isTensor = false;
  const Exchange *exchange = nullptr;

  bool read(PyObject *given) {
    if (!given || !PyType_Check(given))
      return !given || (isTensor = PyObject_IsTrue(given)) || !PyErr_Occurred();
    exchange = exchangeOf(reinterpret_cast<PyTypeObject *>(given));
    if (!exchange)
      raise(HEDDLE_USAGE,
            "'tensors' is %S, but True, False or a type that has DLPack's "
            "__dlpack_c_exchange_api__ is allowed",
            given);
    return exchange;
  }
};

PyObject *give(const State &state, size_t i, heddle_tensor_t &tensor, const Form &form) {
  bool isPlain = tensor.dtype != HEDDLE_SEQUENCE && !state.outputs[i].isMap;
  if (isPlain && form.exchange && tensor.dtype != HEDDLE_STRING) {
    heddle_tensor_t shared = tensor;
    Ref owner(wrap(tensor));
    return owner ? exportDirect(*form.exchange, shared, owner.get()) : nullptr;
  }
  if (isPlain && form.isTensor)
    return wrap(tensor);
  Ref made(adopt(tensor, state.outputs[i].kind));
  if (!made || !state.outputs[i].isMap)
    return made.release();
  return PyObject_CallMethod(arrays, "present", "OO", made.get(),
                             PyList_GetItem(state.outputInfos.get(), Py_ssize_t(i)));
}

PyObject *runOnce(const State &state, PyObject *names, PyObject *feeds, PyObject *out,
                  const Form &form) {
  std::vector<size_t> chosen;
  if (!choose(state, names, chosen))
    return nullptr;
  Keep keep;
  std::vector<heddle_tensor_t> inputs(state.inputs.size());
  Results results(state.outputs.size());
  Places places;
  if (!feedAll(state, feeds, inputs.data(), keep) || !places.read(state, out, keep))
    return nullptr;
  if (!places.objects.empty() && !usePlaces(state, places, inputs.data(), results.tensors.data()))
    return nullptr;

  heddle_status_t *status;
  Py_BEGIN_ALLOW_THREADS status = api.session_run(state.session, inputs.data(), inputs.size(),
                                                  results.tensors.data(), results.tensors.size());
  Py_END_ALLOW_THREADS if (status) {
    raise(status);
    return nullptr;
  }
  if (state.isProfiled && raiseOfCallback())
    return nullptr;
  std::vector<Ref> made(state.outputs.size());
  for (size_t i = 0; i < places.objects.size(); ++i) {
    if (!places.objects[i])
      continue;
    if (!hasShape(state.outputs[i], places.tensors[i], results.tensors[i], "the run gave"))
      return nullptr;
    made[i] = Ref::borrow(places.objects[i]);
  }
  Ref list(PyList_New(Py_ssize_t(chosen.size())));
  for (size_t at = 0; list && at < chosen.size(); ++at) {
    size_t i = chosen[at];
    if (!made[i])
      made[i] = Ref(give(state, i, results.tensors[i], form));
    if (!made[i])
      return nullptr;
    PyList_SetItem(list.get(), Py_ssize_t(at), Ref::borrow(made[i].get()).release());
  }
  return list.release();
}

PyObject *run(PyObject *object, PyObject *const *given, Py_ssize_t count, PyObject *keywords) {
  static const char *names[] = {"output_names", "feeds", "run_options", "out", "tensors"};
  PyObject *values[5] = {};
  if (!parse({"run", 2, 3, 5, names}, given, count, keywords, values))
    return nullptr;
  State *state = stateOf(object);
  if (!state)
    return nullptr;
  try {
    Form form;
    if (!form.read(values[4]))
      return nullptr;
    return runOnce(*state, values[0], values[1], values[3], form);
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
}

/// _bind(number of an input, heddle.Tensor or None)
PyObject *bind(PyObject *object, PyObject *arguments) {
  Py_ssize_t number;
  PyObject *tensor;
  State *state = stateOf(object);
  if (!state || !PyArg_ParseTuple(arguments, "nO", &number, &tensor))
    return nullptr;
  if (number < 0 || size_t(number) >= state->bound.size() ||
      (tensor != Py_None && !tensorIn(tensor))) {
    PyErr_SetString(PyExc_TypeError, "the number of an input, and a heddle.Tensor or None");
    return nullptr;
  }
  state->bound[size_t(number)] = tensor == Py_None ? Ref() : Ref::borrow(tensor);
  Py_RETURN_NONE;
}

PyObject *bound(PyObject *object, void *) {
  State *state = stateOf(object);
  Ref made(state ? PyDict_New() : nullptr);
  for (size_t i = 0; made && i < state->bound.size(); ++i)
    if (state->bound[i] &&
        PyDict_SetItem(made.get(), state->inputs[i].name.get(), state->bound[i].get()) < 0)
      return nullptr;
  return made.release();
}

PyObject *handle(PyObject *object, void *) {
  State *state = stateOf(object);
  return state ? PyLong_FromVoidPtr(state->session) : nullptr;
}

template <Ref State::*infos> PyObject *listOf(PyObject *object, PyObject *) {
  State *state = stateOf(object);
  return state ? PySequence_List((state->*infos).get()) : nullptr;
}

} // namespace

PyObject *makeSessionType() {
  static PyGetSetDef properties[] = {
      {"_handle", handle, nullptr, "address of the heddle_session_t", nullptr},
      {"bound", bound, nullptr, "{name of an input: heddle.Tensor} of what is bound", nullptr},
      {}};
  static PyMethodDef methods[] = {
      {"_bind", bind, METH_VARARGS, "Binds one input."},
      {"get_inputs", listOf<&State::inputInfos>, METH_NOARGS, "A list of heddle.NodeArg."},
      {"get_outputs", listOf<&State::outputInfos>, METH_NOARGS, "A list of heddle.NodeArg."},
      {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
       METH_FASTCALL | METH_KEYWORDS,
       "run(output_names, feeds, run_options=None, *, out=None, tensors=False)\n--\n\n"
       "Results in the order of output_names (None: all), for feeds {name: array}.\n\n"
       "Feeds are whatever is like an array, or has __dlpack__, such as a torch tensor on the "
       "CPU;\n"
       "what is dense and of the model's type is read where it lies. A model's input that is a "
       "map\n"
       "takes a dict. `out`, {name: array or anything with __dlpack__}, is memory for results: of\n"
       "the result's type and shape, dense and writable; these results are then the caller's own\n"
       "objects. `tensors` gives heddle.Tensor, for DLPack, instead of arrays of NumPy; a type\n"
       "such as torch.Tensor, which has DLPack's functions for C, gives objects of that.\n"
       "`run_options` is not looked at. Any number of threads may run one session at once."},
      {},
  };
  static PyType_Slot slots[] = {
      {Py_tp_init, reinterpret_cast<void *>(initialize)},
      {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {},
  };
  static PyType_Spec spec = {"heddle.extension.Session", sizeof(Object), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return PyType_FromSpec(&spec);
}

} // namespace heddle::python
