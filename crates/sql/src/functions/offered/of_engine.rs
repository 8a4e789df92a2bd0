//! The delegation of an aggregate wrapper to DataFusion's function.

/// Methods of `AggregateUDFImpl` that ask `self.of_engine`.
macro_rules! of_engine_methods {
    () => {
        fn name(&self) -> &str {
            self.of_engine.name()
        }

        fn aliases(&self) -> &[String] {
            self.of_engine.aliases()
        }

        fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
            self.of_engine.schema_name(params)
        }

        fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
            self.of_engine.inner().human_display(params)
        }

        fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
            self.of_engine.window_function_schema_name(params)
        }

        fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
            self.of_engine.inner().display_name(params)
        }

        fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
            self.of_engine.window_function_display_name(params)
        }

        fn signature(&self) -> &Signature {
            self.of_engine.signature()
        }

        fn return_type(&self, types: &[DataType]) -> Result<DataType> {
            self.of_engine.return_type(types)
        }

        fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
            self.of_engine.return_field(fields)
        }

        fn is_nullable(&self) -> bool {
            self.of_engine.is_nullable()
        }

        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
            self.of_engine.coerce_types(types)
        }

        fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
            self.of_engine.default_value(data_type)
        }

        fn supports_null_handling_clause(&self) -> bool {
            self.of_engine.supports_null_handling_clause()
        }

        fn supports_within_group_clause(&self) -> bool {
            self.of_engine.supports_within_group_clause()
        }

        fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
            self.of_engine.inner().set_monotonicity(data_type)
        }

        fn documentation(&self) -> Option<&Documentation> {
            self.of_engine.documentation()
        }
    };
}

pub(in crate::functions) use of_engine_methods;
