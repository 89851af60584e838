// SPDX-License-Identifier: Apache-2.0
// Runs "weir profile" and --profile as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "tests/cli/weir/program.h"
#include "tests/toy_profile.h"

namespace weir::cli::profile_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kGemms[] =
    "m,n,k,latency_us,note\n"
    "1024,1024,1024,30,\"a, b\"\n"
    "2048,2048,2048,80,c\n"
    "4096,4096,4096,520,d\n";

std::string WriteProfile(const char* name, const DeviceProfile& profile) {
  return WriteInput(name, PrintTextProto(profile));
}

TEST(ProfileTest, ListsWhatItCanShow) {
  const ProgramRun list = RunWeir("profile list");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out, AllOf(HasSubstr("h200-sxm\n"), HasSubstr("t4\n")));
  EXPECT_EQ(RunWeir("profile show h200-sxm").exit_code, 0);
  EXPECT_THAT(RunWeir("profile show h201-sxm").err,
              HasSubstr("did you mean h200-sxm?"));
}

TEST(ProfileTest, ShowsEverythingAsJson) {
  const std::string file = WriteProfile("toy.textproto", ToyProfile());
  const ProgramRun run = RunWeir("profile show --format json " + file);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out)["result"];
  EXPECT_EQ(result["name"], "Toy-1");
  EXPECT_EQ(result["provenance"]["software"]["nccl"], "2.28.9");
  EXPECT_EQ(result["links"].size(), 2u);
  EXPECT_EQ(result["stages"].size(), 3u);
  EXPECT_EQ(result["memory"].size(), 1u);
  for (const auto& figure : result["parameters"]) {
    EXPECT_EQ(figure["source"], "made up for tests");
    if (figure["path"] == "kernel_gap_seconds") {
      EXPECT_EQ(figure["unit"], "s");
      EXPECT_EQ(figure["kind"], "measured");
    }
  }
}

TEST(ProfileTest, ShowsTheFiguresOfTheBase) {
  const std::string file =
      WriteInput("variant.textproto",
                 "name: 'variant' base: 't4'"
                 " memory_bytes { value: 8e9 kind: ASSUMED source: 'mine' }");
  const auto result_of = [](const std::string& name) {
    const ProgramRun run = RunWeir("profile show --format json " + name);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return nlohmann::json::parse(run.out)["result"];
  };
  const auto base = result_of("t4"), variant = result_of(file);
  EXPECT_EQ(variant["name"], "variant");
  ASSERT_EQ(variant["parameters"].size(), base["parameters"].size());
  int num_different = 0;
  for (size_t i = 0; i < base["parameters"].size(); ++i) {
    if (variant["parameters"][i] == base["parameters"][i]) continue;
    ++num_different;
    EXPECT_EQ(variant["parameters"][i]["path"], "memory_bytes");
    EXPECT_EQ(variant["parameters"][i]["source"], "mine");
  }
  EXPECT_EQ(num_different, 1);
}

TEST(ProfileTest, ToleranceIsAVerdict) {
  const std::string toy = WriteProfile("toy.textproto", ToyProfile());
  EXPECT_EQ(
      RunWeir("profile diff --tolerance 0.01 " + toy + " " + toy).exit_code, 0);
  DeviceProfile changed = ToyProfile();
  auto* seconds = changed.mutable_kernels(3)->mutable_seconds();
  *seconds = QuantilesAround(1.015 * seconds->p50());
  const std::string other = WriteProfile("other.textproto", changed);
  const std::string diff = "profile diff " + toy + " " + other;
  const ProgramRun run = RunWeir(diff + " --tolerance 0.01");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("no parameter differs"),
                             HasSubstr("only in A"), HasSubstr("1.015")));
  EXPECT_EQ(RunWeir(diff + " --tolerance 0.02").exit_code, 0);
  EXPECT_EQ(RunWeir(diff).exit_code, 0);
  const ProgramRun json = RunWeir(diff + " --format json");
  const auto result = nlohmann::json::parse(json.out)["result"];
  EXPECT_NEAR(result["kernels"][0]["ratio"].get<double>(), 1.015, 1e-9);
  EXPECT_NEAR(result["ratios"]["p50"].get<double>(), 1, 1e-12);
}

TEST(ProfileTest, AScenarioWarnsOfAnotherGpuAndOtherVersions) {
  const std::string toy = WriteProfile("toy.textproto", ToyProfile());
  const std::string scenario = WriteInput(
      "scenario.textproto",
      "model: 'gpt2' cluster: 'dgx-a100' num_nodes: 1 schedule: '1f1b' "
      "parallelism { pipeline: 4 } batch { microbatch_size: 1 "
      "global_batch_size: 8 } "
      "training { precision: MIXED_BF16 flash_attention: true } "
      "software { nccl: '2.27.3' }");
  const ProgramRun run = RunWeir("simulate " + scenario + " --profile " + toy);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.err,
      AllOf(
          HasSubstr("the profile is for Toy-1, but the cluster has A100-SXM4"),
          HasSubstr("measured with NCCL 2.28.9, not 2.27.3")));
  EXPECT_EQ(RunWeir("simulate " + scenario).err.find("Toy"), std::string::npos);
}

TEST(ProfileTest, TheOldNameOfTheOptionIsGone) {
  const ProgramRun run = RunWeir("simulate --device t4");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("unknown option --device"));
}

TEST(ProfileImportTest, WritesAProfileThatNamesItsSource) {
  const std::string file = WriteInput("gemm.csv", kGemms);
  const ProgramRun run = RunWeir(absl::StrCat(
      "profile import ", file,
      " --profile a100-sxm-80gb --source \"our cluster\" --out a.textproto"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("fit: mean |error|"),
                             HasSubstr("3 rows; worst: m=")));
  EXPECT_THAT(run.err, HasSubstr("wrote a.textproto"));
  // The next import can start from a profile.
  const ProgramRun again = RunWeir(absl::StrCat(
      "profile import ", file, " --profile a.textproto --out b.textproto"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST(ProfileImportTest, ErrorsNameFileLineAndColumn) {
  const std::string file = WriteInput("bad.csv", "m,n,k,latency_us\n8,8,x,1\n");
  const ProgramRun run = RunWeir(
      absl::StrCat("profile import ", file, " --profile t4 --out a.textproto"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              HasSubstr("error: bad.csv:2: k is \"x\", expected a number"));
  EXPECT_EQ(RunWeir("profile import gone.csv --profile t4 --out a").exit_code,
            2);
  EXPECT_THAT(
      RunWeir(absl::StrCat("profile import ", file)).err,
      AllOf(HasSubstr("--profile is missing"), HasSubstr("--out is missing")));
}

TEST(ProfileImportTest, CreatesAProfileOfANewDevice) {
  const std::string gemms = WriteInput("new_gemm.csv", kGemms);
  const std::string streams = WriteInput(
      "new_streams.csv",
      "kernel,bytes,latency_us\ncopy,1e9,500\ncopy,2e9,998\nnorm,1e9,600\n"
      "norm,4e9,2400\nelementwise,1e9,520\n");
  const std::string device =
      " --device X1 --peak bf16=500e12,fp16=500e12 --bandwidth 2.5e12 --memory "
      "48GiB --multiprocessors 100 --profile h100-sxm --out x1.textproto";
  const ProgramRun run = RunWeir(absl::StrCat(
      "profile import ", gemms, " --also ", streams, device, " --force"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("new_gemm.csv\nfit: mean |error|"),
                             HasSubstr("new_streams.csv\nfit: mean |error|"),
                             HasSubstr("cross-validation (10 folds)"),
                             HasSubstr("before the fit: mean |error|")));
  EXPECT_THAT(run.out, Not(HasSubstr("warning")));
  const ProgramRun shown = RunWeir("profile show x1.textproto --format json");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto result = nlohmann::json::parse(shown.out)["result"];
  EXPECT_EQ(result["name"], "X1");
  for (const auto& figure : result["parameters"]) {
    const std::string path = figure["path"], kind = figure["kind"];
    if (path == "matrix_rates[0].peak_flops") {
      EXPECT_EQ(figure["value"], 500e12);
      EXPECT_EQ(kind, "datasheet");
    } else if (path == "gemm.matrix_rate" || path == "norm_efficiency" ||
               path == "memory_efficiency") {
      EXPECT_EQ(kind, "fitted") << path;
    } else if (path == "attention_efficiency" ||
               path == "collectives.simple.base_seconds") {
      // Measured on the H100, assumed here.
      EXPECT_EQ(kind, "assumed") << path;
      EXPECT_GE(figure["relative_error"], 0.2) << path;
    }
  }
  // Without GEMMs, those of the similar device are assumed, with a warning.
  const ProgramRun assumed =
      RunWeir(absl::StrCat("profile import ", streams, device, " --force"));
  EXPECT_EQ(assumed.exit_code, 0) << assumed.err;
  EXPECT_THAT(
      assumed.out,
      HasSubstr("warning: no bf16 or fp16 GEMMs were imported: those of "
                "X1 are assumed from the H100-SXM5-80GB"));
  EXPECT_THAT(RunWeir("profile show x1.textproto").out,
              HasSubstr("GEMMs: assumed from the H100-SXM5-80GB"));
  // Rates of the cache are in proportion to the arithmetic peak.
  const auto cache_rate = [](const std::string& profile) {
    const ProgramRun json =
        RunWeir(absl::StrCat("profile show --format json ", profile));
    for (const auto& figure :
         nlohmann::json::parse(json.out)["result"]["parameters"]) {
      if (figure["path"] == "gemm.cache_bytes_per_second") {
        return figure["value"].get<double>();
      }
    }
    return 0.0;
  };
  EXPECT_NEAR(cache_rate("x1.textproto"), cache_rate("h100-sxm") * 500 / 989.4,
              1e-6 * cache_rate("h100-sxm"));
}

TEST(ProfileImportTest, GemmsInFp8LeaveThoseIn16BitsAssumed) {
  const std::string file = WriteInput("fp8_gemm.csv",
                                      "m,n,k,latency_us,dtype\n"
                                      "1024,1024,1024,20,fp8\n"
                                      "2048,2048,2048,50,fp8\n"
                                      "4096,4096,4096,260,fp8\n");
  const ProgramRun run = RunWeir(absl::StrCat(
      "profile import ", file,
      " --device X1 --peak bf16=500e12,fp8=1e15 --bandwidth 2.5e12 --memory "
      "48GiB --multiprocessors 100 --profile h100-sxm --out x3.textproto"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("fit: mean |error|"),
                             HasSubstr("warning: no bf16 or fp16 GEMMs were "
                                       "imported: those of X1 are assumed")));
  const std::string shown = RunWeir("profile show x3.textproto").out;
  EXPECT_THAT(shown, AllOf(HasSubstr("none of this device in 16 bits"),
                           HasSubstr("].peak_flops (fp8) ")));
}

TEST(ProfileImportTest, RefusesPeaksThatNoRecipeCouldUse) {
  const std::string file = WriteInput("new_gemm.csv", kGemms);
  const auto error = [&](const std::string& options,
                         const std::string& similar = "h100-sxm") {
    return RunWeir(absl::StrCat("profile import ", file,
                                " --bandwidth 2.5e12 --memory 48GiB "
                                "--multiprocessors 100 --out x4.textproto "
                                "--force --profile ",
                                similar, " ", options))
        .err;
  };
  EXPECT_THAT(error("--device X1 --peak foo=1e15,bf16=9e14"),
              HasSubstr("--peak is foo=1e15, expected one of bf16, fp16, fp32, "
                        "fp8, fp8_block, mxfp8, nvfp4, mxfp4"));
  EXPECT_THAT(error("--device X1 --peak fp8=1e15"),
              HasSubstr("--peak has neither bf16 nor fp16"));
  EXPECT_THAT(error("--device X1 --peak bf16=9e14,bf16=1e15"),
              HasSubstr("expected bf16 once"));
  for (const char* rate : {"1e-3", "9e11", "1.1e17", "1e300"}) {
    EXPECT_THAT(error(absl::StrCat("--device X1 --peak bf16=", rate)),
                HasSubstr(absl::StrCat("--peak is bf16=", rate,
                                       ", expected 1e+12 to 1e+17 FLOP/s")));
  }
  EXPECT_THAT(error("--device X1 --peak bf16=1e15 --links 1"),
              HasSubstr("--links is 1, expected 1000000 to 1e+16"));
  EXPECT_THAT(
      error(absl::StrCat("--peak bf16=9e14 --device ", std::string(101, 'x'))),
      HasSubstr("--device has 101 bytes, expected at most 100"));
  // The limits leave derived rates in their ranges, whatever is similar.
  for (const char* rate : {"1e12", "1e17"}) {
    for (const char* similar : {"t4", "v100-sxm2-16gb", "b300-sxm"}) {
      const std::string err =
          error(absl::StrCat("--device X1 --peak fp16=", rate, ",bf16=", rate),
                similar);
      EXPECT_THAT(err, Not(HasSubstr("bytes_per_second"))) << similar << rate;
    }
  }
}

TEST(ProfileImportTest, NewDevicesNeedTheirDatasheet) {
  const std::string file = WriteInput("new_gemm.csv", kGemms);
  EXPECT_THAT(RunWeir(absl::StrCat("profile import ", file,
                                   " --device X1 --peak bf16=500e12 --profile "
                                   "h100-sxm --out x2.textproto"))
                  .err,
              AllOf(HasSubstr("--bandwidth is missing"),
                    HasSubstr("--memory is missing"),
                    HasSubstr("--multiprocessors is missing")));
  EXPECT_THAT(RunWeir(absl::StrCat("profile import ", file,
                                   " --memory 48GiB --profile h100-sxm --out "
                                   "x2.textproto"))
                  .err,
              HasSubstr("expected --device NAME"));
  EXPECT_THAT(RunWeir(absl::StrCat("profile import ", file,
                                   " --device X1 --peak bf16 --profile "
                                   "h100-sxm --out x2.textproto"))
                  .err,
              HasSubstr("expected FORMAT=FLOPS, for example bf16=989e12"));
  const std::string bad =
      WriteInput("bad_streams.csv", "kernel,bytes,latency_us\nfoo,1e9,5\n");
  EXPECT_THAT(RunWeir(absl::StrCat("profile import ", bad,
                                   " --profile t4 --out x2.textproto"))
                  .err,
              HasSubstr("expected copy, elementwise or norm"));
}

}  // namespace weir::cli::profile_test
