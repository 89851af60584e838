// SPDX-License-Identifier: Apache-2.0
// The extension module weir._core. The Python code of the package provides the
// public interface; see python/README.md.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/exit_code.h"
#include "base/interrupt.h"
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

// Estimates all scenarios without the GIL, until one fails.
std::vector<Estimate> EstimatesOf(const py::iterable& objects) {
  std::vector<Scenario> scenarios;
  for (const py::handle object : objects) {
    scenarios.push_back(ScenarioOf(object));
  }
  std::vector<Estimate> estimates;
  absl::Status status;
  {
    const py::gil_scoped_release release;
    for (const Scenario& scenario : scenarios) {
      absl::StatusOr<Estimate> estimate =
          TheEstimator().Run("scenario", scenario);
      status = estimate.status();
      if (!status.ok()) break;
      estimates.push_back(*std::move(estimate));
    }
  }
  if (!status.ok()) throw StatusError(status);
  return estimates;
}

void AddEstimate(py::module_* module) {
  const auto optional = [](bool has, double value) {
    return has ? std::optional<double>(value) : std::nullopt;
  };
  py::class_<Estimate>(*module, "Estimate")
      .def_property_readonly(
          "step_seconds", [](const Estimate& e) { return e.run.batch_seconds; })
      .def_property_readonly(
          "makespan_seconds",
          [](const Estimate& e) { return e.run.makespan_seconds; })
      .def_property_readonly(
          "peak_memory_bytes",
          [](const Estimate& e) { return e.values.peak_memory_bytes(); })
      .def_property_readonly("peak_memory_bytes_by_rank",
                             [](const Estimate& e) { return e.run.peak_bytes; })
      .def_property_readonly(
          "fits_memory", [](const Estimate& e) { return e.run.fits_memory; })
      .def_property_readonly(
          "method", [](const Estimate& e) { return e.values.method(); })
      .def_property_readonly(
          "num_gpus", [](const Estimate& e) { return e.values.num_gpus(); })
      .def_property_readonly(
          "chunks", [](const Estimate& e) { return e.values.chunks(); })
      .def_property_readonly(
          "microbatches",
          [](const Estimate& e) { return e.values.microbatches(); })
      .def_property_readonly("samples_per_second",
                             [optional](const Estimate& e) {
                               return optional(
                                   e.values.has_samples_per_second(),
                                   e.values.samples_per_second());
                             })
      .def_property_readonly("tokens_per_second",
                             [optional](const Estimate& e) {
                               return optional(e.values.has_tokens_per_second(),
                                               e.values.tokens_per_second());
                             });
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
