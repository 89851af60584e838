// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/json_syntax.h"
#include "base/json_text.h"
#include "calibrate/fit/nccl_tests_internal.h"

namespace weir::calibrate {
namespace {

using Json = nlohmann::json;

const Json& At(const Json& object, const char* key) {
  static const Json* const null = new Json;
  if (!object.is_object()) return *null;
  const auto at = object.find(key);
  return at == object.end() ? *null : *at;
}

class JsonReader {
 public:
  explicit JsonReader(Problems* problems) : problems_(*problems) {}

  NcclTestsRun Read(const Json& file) {
    NcclTestsRun run;
    ReadProgram(At(file, "args"), &run);
    if (const Json& code = At(file, "nccl_version"); code.is_number_integer()) {
      run.nccl_version = NcclVersion(code.get<int>());
    }
    ReadDevices(file, &run);
    const Json& results = At(file, "results");
    if (!results.is_array() || results.empty()) {
      Wrong("results", results, "a list of measurements");
      return run;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      ReadResult(absl::StrCat("results[", i, "]"), results[i], &run);
    }
    return run;
  }

 private:
  void Wrong(absl::string_view path, const Json& found,
             absl::string_view expected) {
    std::string text = DumpJson(found);
    if (text.size() > 40) text = absl::StrCat(text.substr(0, 40), "...");
    problems_.Add(path, absl::StrCat("is ", text, ", expected ", expected));
  }

  void ReadProgram(const Json& args, NcclTestsRun* run) {
    if (!args.is_array() || args.empty() || !args[0].is_string()) {
      // The arguments are never shown, as they may be confidential.
      problems_.Add("args", absl::StrCat("has no program, expected a list that "
                                         "begins with ",
                                         kKnownPrograms));
      return;
    }
    const auto kind = KindOfProgram(args[0].get_ref<const std::string&>());
    if (kind.has_value()) {
      run->kind = *kind;
    } else {
      Wrong("args[0]", args[0], kKnownPrograms);
    }
  }

  // The list has one entry per process, which drives nthreads * ngpus.
  void ReadDevices(const Json& file, NcclTestsRun* run) {
    const Json& config = At(file, "config");
    const Json& devices = At(config, "devices").is_array()
                              ? At(config, "devices")
                              : At(file, "devices");
    if (!devices.is_array() || devices.empty()) {
      Wrong("devices", devices, "a list with an entry for each process");
      return;
    }
    std::set<std::string> hosts;
    for (const Json& device : devices) {
      const Json& host = At(device, "hostname");
      if (host.is_string()) hosts.insert(host.get<std::string>());
      const Json& info = At(device, "device_info");
      if (info.is_string() &&
          std::find(run->devices.begin(), run->devices.end(),
                    info.get_ref<const std::string&>()) == run->devices.end()) {
        run->devices.push_back(info.get<std::string>());
      }
    }
    const double num_ranks = Count(config, "nthreads") *
                             Count(config, "ngpus") *
                             static_cast<double>(devices.size());
    if (!(num_ranks >= 2 && num_ranks <= 1e6)) {
      problems_.Add("config", absl::StrCat("gives a total of ", num_ranks,
                                           " ranks, expected 2 or more"));
      return;
    }
    run->num_ranks = static_cast<int>(num_ranks);
    run->num_nodes = std::max<int>(1, static_cast<int>(hosts.size()));
  }

  double Count(const Json& config, const char* key) {
    const Json& count = At(config, key);
    if (count.is_number() && count.get<double>() >= 1) {
      return count.get<double>();
    }
    Wrong(absl::StrCat("config.", key), count, "1 or more");
    return 1;
  }

  void ReadResult(const std::string& path, const Json& result,
                  NcclTestsRun* run) {
    const Json& size = At(result, "size");
    if (!size.is_number() || !(size.get<double>() >= 0)) {
      Wrong(path + ".size", size, "bytes");
      return;
    }
    const bool out = At(result, "out_of_place").is_object();
    const char* const place = out ? "out_of_place" : "in_place";
    const Json& half = At(result, place);
    const std::string half_path = absl::StrCat(path, ".", place);
    const Json& time = At(half, "time");
    if (!time.is_number() ||
        !(time.get<double>() > 0 || size.get<double>() == 0)) {
      Wrong(half_path + ".time", time, "microseconds above 0");
      return;
    }
    const Json& wrong = At(half, "nwrong");
    if (wrong.is_number() && wrong.get<double>() != 0) {
      Wrong(half_path + ".nwrong", wrong,
            "0 or null: the run reported wrong results");
      return;
    }
    if (size.get<double>() == 0) return;
    run->rows.push_back({size.get<double>(), time.get<double>() * 1e-6});
  }

  Problems& problems_;
};

}  // namespace

std::vector<NcclTestsRun> ReadNcclTestsJson(absl::string_view text,
                                            Problems* problems) {
  const absl::Status syntax = CheckJsonSyntax("text", text);
  if (!syntax.ok()) {
    problems->Add("", absl::StrCat("was not written by nccl-tests -J: ",
                                   syntax.message()));
    return {};
  }
  const Json file = Json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  return {JsonReader(problems).Read(file)};
}

}  // namespace weir::calibrate
