// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/gnuplot.h"

#include <expat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "results/views/train_study.h"
#include "tests/hostile_names.h"

namespace weir::cli::gnuplot_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Each test runs in its own folder, where it would find a canary file.
class GnuplotTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindGnuplot().ok()) GTEST_SKIP() << "this machine has no gnuplot";
    std::string pattern = testing::TempDir() + "weir-gnuplot-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path("/");
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }

  fs::path folder_;
};

// Returns the texts of a document. Fails the test if it is not well-formed or
// has elements that gnuplot does not write.
std::vector<std::string> TextsOf(const std::string& svg) {
  struct Texts {
    std::vector<std::string> texts;
    bool open = false;
  } texts;
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  XML_SetUserData(parser.get(), &texts);
  XML_SetElementHandler(
      parser.get(),
      [](void* data, const XML_Char* name, const XML_Char** attributes) {
        auto* texts = static_cast<Texts*>(data);
        EXPECT_THAT(std::string(name), Not(HasSubstr("script")));
        for (; *attributes != nullptr; attributes += 2) {
          EXPECT_THAT(std::string(*attributes), Not(HasSubstr("onload")));
        }
        if (std::string(name) != "text") return;  // <tspan> is inside <text>
        texts->open = true;
        texts->texts.emplace_back();
      },
      [](void* data, const XML_Char* name) {
        if (std::string(name) == "text")
          static_cast<Texts*>(data)->open = false;
      });
  XML_SetCharacterDataHandler(parser.get(),
                              [](void* data, const XML_Char* text, int length) {
                                auto* texts = static_cast<Texts*>(data);
                                if (texts->open)
                                  texts->texts.back().append(text, length);
                              });
  EXPECT_EQ(XML_Parse(parser.get(), svg.data(), static_cast<int>(svg.size()),
                      XML_TRUE),
            XML_STATUS_OK)
      << XML_ErrorString(XML_GetErrorCode(parser.get()));
  for (std::string& text : texts.texts) absl::StripAsciiWhitespace(&text);
  return texts.texts;
}

results::StudySchedule ScheduleNamed(const std::string& name) {
  results::StudySchedule schedule;
  schedule.schedule = name;
  schedule.batch_seconds = 1;
  results::StudyCurve curve;
  curve.losses = {4, 3, 2, 1};
  schedule.curves = {curve};
  return schedule;
}

TEST_F(GnuplotTest, HostileNamesArePicturedAndNotRun) {
  constexpr size_t kPerPicture = 6;  // more do not fit into the legend
  const std::vector<HostileName>& names = HostileNames();
  for (size_t first = 0; first < names.size(); first += kPerPicture) {
    const size_t end = std::min(names.size(), first + kPerPicture);
    results::TrainStudy study;
    study.num_batches = 4;
    study.samples_per_batch = 1;
    study.train_model = study.scenario = names[first].text;
    for (size_t i = first; i < end; ++i) {
      study.schedules.push_back(ScheduleNamed(names[i].text));
    }
    const results::StudyPlot plot = results::TrainStudyPlot(study);
    EXPECT_EQ(plot.script.find('`'), std::string::npos);
    const auto svg = DrawSvg(plot.script);
    ASSERT_TRUE(svg.ok()) << svg.status();
    const std::string named = results::WithNames(*svg, plot);
    EXPECT_EQ(EscapeControls(named), named);
    const std::vector<std::string> texts = TextsOf(named);
    for (size_t i = first; i < end; ++i) {
      EXPECT_EQ(plot.script.find(names[i].text), std::string::npos);
      std::string shown = WithoutControls(names[i].text);
      if (shown.size() > 200) shown = shown.substr(0, 64) + "...";
      absl::StripAsciiWhitespace(&shown);
      EXPECT_THAT(texts, Contains(shown)) << names[i].kind;
    }
  }
  EXPECT_FALSE(fs::exists(kCanary));
}

TEST_F(GnuplotTest, NoSettingsOfTheUserAreRead) {
  ASSERT_TRUE(WriteFile(".gnuplot", "system('touch CANARY')\n").ok());
  setenv("HOME", folder_.c_str(), 1);
  setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  ASSERT_TRUE(WriteFile("gnuplot/gnuplotrc", "system('touch CANARY')\n").ok());
  const auto svg = DrawSvg("set terminal svg\nplot x\n");
  EXPECT_TRUE(svg.ok()) << svg.status();
  EXPECT_FALSE(fs::exists(kCanary));
}

TEST_F(GnuplotTest, AFailureIsOneLine) {
  const auto svg = DrawSvg("set terminal svg\nplot nonsense(x)\n");
  ASSERT_FALSE(svg.ok());
  const std::string message(svg.status().message());
  EXPECT_THAT(message, HasSubstr("--plot: gnuplot failed with exit code"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  const auto nothing = DrawSvg("set terminal svg\n");
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(std::string(nothing.status().message()),
              HasSubstr("gnuplot wrote an incomplete plot"));
}

TEST_F(GnuplotTest, APictureAboveTheLimitOfFilesIsNamed) {
  IgnoreFileSizeSignal();
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {2000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto svg = DrawSvg("set terminal svg\nplot x\n");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_THAT(std::string(svg.status().message()),
              HasSubstr("the plot exceeds the limit on file sizes"));
}

TEST(GnuplotSearchTest, NoShellLooksForIt) {
  setenv("PATH", "/nowhere:$(touch CANARY)", 1);
  const absl::Status status = FindGnuplot();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(fs::exists(kCanary));
}

}  // namespace weir::cli::gnuplot_test
