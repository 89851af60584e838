// SPDX-License-Identifier: Apache-2.0
#include "models/layer_list.h"

#include <gtest/gtest.h>

#include "models/model.h"

namespace weir::models::layer_list_test {

Model DeepModel(bool experts) {
  Model model = *LoadModel(experts ? "mixtral-8x7b" : "gpt2");
  model.mutable_transformer()->set_num_layers(1000);
  if (experts) model.mutable_transformer()->set_num_dense_blocks(3);
  return model;
}

WorkSpec Spec() {
  WorkSpec spec;
  spec.microbatch_size = 2;
  spec.sequence_length = 512;
  return spec;
}

// A copy of each block would take 1,002 times as much memory as one.
TEST(LayerListTest, KeepsEachKindOnce) {
  EXPECT_EQ(ListLayers(DeepModel(false), Spec()).num_kinds(), 3u);
  EXPECT_EQ(ListLayers(DeepModel(true), Spec()).num_kinds(), 4u);
}

TEST(LayerListTest, IsTheLayersOfTheModel) {
  for (const bool experts : {false, true}) {
    const Model model = DeepModel(experts);
    const LayerList list = ListLayers(model, Spec());
    const std::vector<LayerWork> layers = LayersOf(model, Spec());
    ASSERT_EQ(list.size(), layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(list[i].name, layers[i].name);
      EXPECT_EQ(list[i].role, layers[i].role);
      EXPECT_EQ(list[i].parameters, layers[i].parameters);
      EXPECT_EQ(list[i].expert_parameters > 0, experts && i >= 4 && i < 1001);
    }
    EXPECT_EQ(ModelFlops(list, 2), ModelFlops(layers, 2));
    EXPECT_EQ(ForwardFlops(list, 2), ForwardFlops(layers, 2));
    EXPECT_EQ(StageParameters(list, 0, 1002), StageParameters(layers, 0, 1002));
    EXPECT_EQ(StageExpertParameters(list, 1, 9),
              StageExpertParameters(layers, 1, 9));
  }
}

TEST(LayerListTest, OfAVectorHasItsLayers) {
  std::vector<LayerWork> layers(2);
  layers[0].name = "first";
  layers[1].name = "last";
  const LayerList list = layers;
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.front().name, "first");
  EXPECT_EQ(list.back().name, "last");
  EXPECT_TRUE(LayerList().empty());
}

}  // namespace weir::models::layer_list_test
