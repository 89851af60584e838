// SPDX-License-Identifier: Apache-2.0
// The extension module weir._core. The Python code of the package provides the
// public interface; see python/README.md.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/exit_code.h"
#include "base/interrupt.h"
#include "base/problem_parts.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/version.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/weir/run_weir.h"
#include "cli/weir/weir_app.h"
#include "python/bindings/estimator.h"
#include "python/bindings/messages.h"
#include "python/bindings/status_error.h"
#include "scenarios/scenario.h"

namespace weir::python {
namespace {

namespace py = pybind11;

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw StatusError(value.status());
  return *std::move(value);
}

// A command line for functions that take argc and argv.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words)
      : words_(words.begin(), words.end()) {
    words_.insert(words_.begin(), "weir");
    for (const std::string& word : words_) pointers_.push_back(word.c_str());
    pointers_.push_back(nullptr);
  }
  int argc() const { return static_cast<int>(words_.size()); }
  const char* const* argv() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<const char*> pointers_;
};

// Commands of this process, which share settings such as the layout of tables.
std::mutex& CommandMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

int Main(const std::vector<std::string>& arguments) {
  const Words words(arguments);
  const py::gil_scoped_release release;
  return cli::RunWeir(words.argc(), words.argv(), cli::MakeWeirApp);
}

// Runs a command as a child of the process `parent`, with which it ends.
int WorkerMain(const std::vector<std::string>& arguments, int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return kExitHungUp;
  return Main(arguments);
}

std::tuple<int, std::string, std::string> RunHere(
    const std::vector<std::string>& arguments) {
  const Words words(arguments);
  const py::gil_scoped_release release;
  const std::lock_guard<std::mutex> lock(CommandMutex());
  cli::CapturedOutput captured;
  const int code =
      cli::RunWeirCommand(words.argc(), words.argv(), cli::MakeWeirApp);
  return {code, std::move(captured.out), std::move(captured.err)};
}

// Returns the scenario that "weir simulate" with these arguments would resolve,
// and notes for the user.
absl::StatusOr<cli::ScenarioRequest> RequestOf(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"simulate"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Words words(all);
  cli::CommandLine line;
  ASSIGN_OR_RETURN(const std::string help,
                   cli::ParseWeirArguments(words.argc(), words.argv(),
                                           cli::MakeWeirApp, &line));
  if (!help.empty()) {
    return absl::InvalidArgumentError(
        "scenario: --help or --version is given, expected options of a "
        "scenario");
  }
  return cli::ApplyAllFlags(line.flags.scenario);
}

py::tuple ScenarioOfArguments(const std::vector<std::string>& arguments,
                              py::handle classes) {
  absl::StatusOr<cli::ScenarioRequest> request;
  {
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(CommandMutex());
    request = RequestOf(arguments);
  }
  const cli::ScenarioRequest value = ValueOrThrow(std::move(request));
  return py::make_tuple(ObjectOf(value.scenario, classes), value.notes);
}

// The members of the Python class Problem for each problem of a message.
py::list ProblemsIn(const std::string& message) {
  const auto text = [](const std::string& part) -> py::object {
    return part.empty() ? py::object(py::none()) : py::str(part);
  };
  const auto number = [](int value) -> py::object {
    return value == 0 ? py::object(py::none()) : py::int_(value);
  };
  py::list problems;
  for (const ProblemParts& parts : SplitProblems(message)) {
    std::string lines = parts.message;
    for (const std::string& detail : parts.details) {
      absl::StrAppend(&lines, "\n  ", detail);
    }
    problems.append(py::make_tuple(lines, text(parts.file), number(parts.line),
                                   text(parts.field), text(parts.found),
                                   text(parts.expected)));
  }
  return problems;
}

Scenario ScenarioOf(py::handle object) {
  Scenario scenario;
  FillMessage("scenario", object, &scenario);
  return scenario;
}

py::object Resolved(py::handle object, py::handle classes) {
  const Scenario scenario = ScenarioOf(object);
  absl::StatusOr<scenarios::ResolvedScenario> resolved;
  {
    const py::gil_scoped_release release;
    resolved = scenarios::ResolveScenario("scenario", scenario);
  }
  return ObjectOf(ValueOrThrow(std::move(resolved)).scenario, classes);
}

py::object ParsedScenario(const std::string& label, const std::string& text,
                          py::handle classes) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(label, text, &scenario);
  if (!parsed.ok()) throw StatusError(parsed);
  return ObjectOf(scenario, classes);
}

Estimator& TheEstimator() {
  static auto* const estimator = new Estimator;
  return *estimator;
}

Estimate EstimateOf(py::handle object) {
  const Scenario scenario = ScenarioOf(object);
  absl::StatusOr<Estimate> estimate;
  {
    const py::gil_scoped_release release;
    estimate = TheEstimator().Run("scenario", scenario);
  }
  return ValueOrThrow(std::move(estimate));
}

// Estimates all scenarios without the GIL, until one fails or a signal handler
// raises (Ctrl-C), which is asked a few times per second.
std::vector<Estimate> EstimatesOf(const py::iterable& objects) {
  std::vector<Scenario> scenarios;
  for (const py::handle object : objects) {
    scenarios.push_back(ScenarioOf(object));
  }
  std::vector<Estimate> estimates;
  absl::Status status;
  {
    constexpr std::chrono::milliseconds kPeriod(100);
    const py::gil_scoped_release release;
    auto next = std::chrono::steady_clock::now() + kPeriod;
    for (const Scenario& scenario : scenarios) {
      absl::StatusOr<Estimate> estimate =
          TheEstimator().Run("scenario", scenario);
      status = estimate.status();
      if (!status.ok()) break;
      estimates.push_back(*std::move(estimate));
      if (std::chrono::steady_clock::now() < next) continue;
      const py::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      next = std::chrono::steady_clock::now() + kPeriod;
    }
  }
  if (!status.ok()) throw StatusError(status);
  return estimates;
}

// The attributes of estimates, in the order of to_dict().
constexpr const char* kEstimateAttributes[] = {
    "step_seconds",      "makespan_seconds",
    "peak_memory_bytes", "peak_memory_bytes_by_rank",
    "fits_memory",       "method",
    "num_gpus",          "chunks",
    "microbatches",      "samples_per_second",
    "tokens_per_second"};

py::dict DictOf(const py::object& estimate) {
  py::dict values;
  for (const char* const name : kEstimateAttributes) {
    values[name] = estimate.attr(name);
  }
  return values;
}

py::object FrameOf(const py::object& estimate) {
  const auto results = py::module_::import("weir.results");
  return results.attr("frame_of")(py::make_tuple(DictOf(estimate)));
}

py::object HtmlOf(const py::object& estimate) {
  const auto results = py::module_::import("weir.results");
  const py::dict values = DictOf(estimate);
  return results.attr("table_html")(py::make_tuple(values), py::list(values));
}

std::string TextOf(const Estimate& estimate) {
  return absl::StrFormat("<weir.Estimate %.6g s, %.4g GiB>",
                         estimate.run.batch_seconds,
                         estimate.values.peak_memory_bytes() / (1 << 30));
}

// What attributes show, for pickle and copy.
py::tuple StateOf(const Estimate& estimate) {
  return py::make_tuple(estimate.run.batch_seconds,
                        estimate.run.makespan_seconds, estimate.run.peak_bytes,
                        estimate.run.fits_memory,
                        py::bytes(estimate.values.SerializeAsString()));
}

Estimate EstimateOfState(const py::tuple& state) {
  if (state.size() != 5) throw py::value_error("not the state of an Estimate");
  Estimate estimate;
  estimate.run.batch_seconds = state[0].cast<double>();
  estimate.run.makespan_seconds = state[1].cast<double>();
  estimate.run.peak_bytes = state[2].cast<std::vector<double>>();
  estimate.run.fits_memory = state[3].cast<bool>();
  if (!estimate.values.ParseFromString(state[4].cast<std::string>())) {
    throw py::value_error("not the state of an Estimate");
  }
  return estimate;
}

void AddEstimate(py::module_* module) {
  const auto optional = [](bool has, double value) {
    return has ? std::optional<double>(value) : std::nullopt;
  };
  py::class_<Estimate>(*module, "Estimate",
                       "A fast estimate: the time and memory of `simulate` to "
                       "1e-9.")
      .def_property_readonly(
          "step_seconds", [](const Estimate& e) { return e.run.batch_seconds; },
          "Time of a step (a batch).")
      .def_property_readonly(
          "makespan_seconds",
          [](const Estimate& e) { return e.run.makespan_seconds; },
          "Time of the whole simulated run.")
      .def_property_readonly(
          "peak_memory_bytes",
          [](const Estimate& e) { return e.values.peak_memory_bytes(); },
          "Peak of the fullest GPU.")
      .def_property_readonly(
          "peak_memory_bytes_by_rank",
          [](const Estimate& e) { return e.run.peak_bytes; },
          "Peak of the fullest GPU of each pipeline rank.")
      .def_property_readonly(
          "fits_memory", [](const Estimate& e) { return e.run.fits_memory; },
          "Whether every GPU has enough memory.")
      .def_property_readonly(
          "method", [](const Estimate& e) { return e.values.method(); },
          "How the time was found: full, reduced, extrapolated, or both.")
      .def_property_readonly(
          "num_gpus", [](const Estimate& e) { return e.values.num_gpus(); },
          "GPUs in use.")
      .def_property_readonly(
          "chunks", [](const Estimate& e) { return e.values.chunks(); },
          "Stages per rank.")
      .def_property_readonly(
          "microbatches",
          [](const Estimate& e) { return e.values.microbatches(); },
          "Microbatches per batch and pipeline.")
      .def_property_readonly(
          "samples_per_second",
          [optional](const Estimate& e) {
            return optional(e.values.has_samples_per_second(),
                            e.values.samples_per_second());
          },
          "Throughput; None with given costs.")
      .def_property_readonly(
          "tokens_per_second",
          [optional](const Estimate& e) {
            return optional(e.values.has_tokens_per_second(),
                            e.values.tokens_per_second());
          },
          "Throughput; None with given costs.")
      .def("to_dict", &DictOf, "Returns all attributes.")
      .def("to_pandas", &FrameOf,
           "Returns a DataFrame with one row; needs pandas.")
      .def("__eq__",
           [](const Estimate& one, const py::object& other) {
             return py::isinstance<Estimate>(other) &&
                    StateOf(one).equal(StateOf(other.cast<const Estimate&>()));
           })
      .def("__repr__", &TextOf)
      .def("_repr_html_", &HtmlOf)
      .def(py::pickle(&StateOf, &EstimateOfState));
}

}  // namespace
}  // namespace weir::python

PYBIND11_MODULE(_core, module) {
  namespace py = pybind11;
  namespace weir_py = weir::python;
  weir::SilenceProtobuf();
  static const py::handle status_error =
      PyErr_NewException("weir._core.StatusError", nullptr, nullptr);
  module.attr("StatusError") = status_error;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): pybind11 takes it so
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const weir_py::StatusError& error) {
      const py::object arguments =
          py::make_tuple(static_cast<int>(weir::ExitCodeOf(error.status())),
                         std::string(error.status().message()));
      PyErr_SetObject(status_error.ptr(), arguments.ptr());
    }
  });
  weir_py::AddEstimate(&module);
  module.attr("__version__") = std::string(weir::WeirVersion());
  module.attr("git_revision") = std::string(weir::GitRevision());
  module.def("main", &weir_py::Main, py::arg("arguments"));
  module.def("worker_main", &weir_py::WorkerMain, py::arg("arguments"),
             py::arg("parent"));
  module.def("run_here", &weir_py::RunHere, py::arg("arguments"));
  module.def("scenario_of_arguments", &weir_py::ScenarioOfArguments,
             py::arg("arguments"), py::arg("classes"));
  module.def("parse_scenario", &weir_py::ParsedScenario, py::arg("label"),
             py::arg("text"), py::arg("classes"));
  module.def("split_problems", &weir_py::ProblemsIn, py::arg("message"));
  module.def("resolve", &weir_py::Resolved, py::arg("scenario"),
             py::arg("classes"));
  module.def(
      "textproto",
      [](py::handle object) {
        return weir::PrintTextProto(weir_py::ScenarioOf(object));
      },
      py::arg("scenario"));
  module.def("estimate", &weir_py::EstimateOf, py::arg("scenario"));
  module.def("estimates", &weir_py::EstimatesOf, py::arg("scenarios"));
  module.def("estimate_seconds",
             [] { return weir_py::TheEstimator().seconds(); });
}
